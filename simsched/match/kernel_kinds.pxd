# The types with which `kernel_kinds.py` is compiled; without a compiler nothing reads this file.
from simsched.match.kernel cimport Kernel

cdef class KernelKinds:
    cdef readonly Kernel kernel
    cdef readonly list counted, placed
    cdef readonly bint all_counted, all_placed

    cpdef selection(self, long long kind, job)
