# The types with which `flat_kinds.py` is compiled; without a compiler nothing reads this file.
from simsched.match.kernel_kinds cimport KernelKinds

cdef class FlatKinds(KernelKinds):
    cdef object _units, _free, _selection

    cpdef selection(self, long long kind, job)
