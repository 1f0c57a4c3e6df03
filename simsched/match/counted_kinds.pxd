# The types with which `counted_kinds.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel
from simsched.match.kernel_kinds cimport KernelKinds
from simsched.match.state.availability cimport Availability

cdef class CountedKinds(KernelKinds):
    cdef Availability _available
    cdef object _policy, _types, _demands, _draws, _requests, _numbered, _kinds, _of_kind, _amount, _numbers
    cdef dict _recipes

    @cython.locals(kernel=Kernel, available=Availability)
    cpdef selection(self, long long kind, job)
