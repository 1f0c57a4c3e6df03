# The types with which `availability.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport change
from simsched.match.kernel_kinds cimport KernelKinds
from simsched.match.state.placed cimport Placed

cdef class Availability:
    cdef public object index, units, use, up, idle, partial, words, places
    cdef public KernelKinds kinds
    cdef public bint ignores_status
    cdef public dict free, total, held, shared, sharers, hidden, counts
    cdef public list log
    cdef public long long base

    cpdef long long claim(self, selection) except -1
    cpdef long long release(self, selection) except -1
    cdef long long _change(self, selection, int sign) except -1
    @cython.locals(names=tuple, sums=list, total=dict, at=cython.Py_ssize_t)
    cdef long long _change_placed(self, Placed placed, int sign) except -1
    cdef _hold(self, hold, int sign)
    cdef _note(self, targets, bint counted=*)
