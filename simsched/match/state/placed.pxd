# The types with which `placed.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.state.selection cimport LazySelection

cdef class Placed(LazySelection):
    cdef readonly object kind, targets
    cdef readonly const long long[::1] claim
    cdef readonly const unsigned long long[::1] bits
    cdef readonly list parts, sums
    cdef readonly tuple holds
    cdef readonly bint counted
    cdef object _made

    @cython.locals(pools=cython.Py_ssize_t)
    cdef const long long[:] cells(self)
    cpdef tuple sizes(self)
