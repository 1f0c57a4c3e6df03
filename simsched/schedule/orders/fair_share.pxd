# The types with which `fair_share.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef long long _DROPPED, _HALF, _RANK

cdef class UsageLedger:
    cdef readonly object half_life, reset, at_end
    cdef double _scale
    cdef object _origin, _turn, _due
    cdef list _waiting
    cdef double[::1] _done, _rate, _begun, _known

    cpdef begin(self, node, rate, now)
    cpdef end(self, node, rate, begin, now)
    @cython.locals(grown=cython.double, usage=double[::1], rate=double[::1], known=double[::1], node=cython.Py_ssize_t)
    cpdef magnified(self, time)
    @cython.locals(taken=cython.Py_ssize_t, at=cython.Py_ssize_t)
    cdef _take(self, time)
    @cython.locals(done=double[::1], begun=double[::1], before=cython.double)
    cdef _charge(self, now, Py_ssize_t node, double rate, begin)
    @cython.locals(since=cython.double)
    cdef double _grown(self, double time) except? -1

cdef class RankedTree:
    cdef bint _across
    cdef Py_ssize_t _first_user
    cdef double[::1] _factors, _by_share
    cdef long long[::1] _parents, _charged, _is_account
    cdef object _paths, _above
    cdef list _levels

    cpdef shares(self, own)
    cdef _ranking(self, own)
    @cython.locals(
        sums=double[::1], values=double[::1], parents=cython.longlong[::1], charged=cython.longlong[::1],
        by_share=double[::1], node=cython.Py_ssize_t, above=cython.double, last=cython.double,
        bits=cython.longlong[::1],
    )
    cdef _keys(self, own)
    @cython.locals(
        is_account=cython.longlong[::1], above=cython.longlong[::1], numbers=cython.longlong[::1],
        at_above=cython.longlong[::1], column=cython.longlong[::1], ranks=cython.longlong[::1],
        order=cython.longlong[::1], rank=cython.longlong, at=cython.Py_ssize_t, node=cython.longlong,
        before=cython.longlong, step=cython.longlong,
    )
    cdef _walk_accounts(self, long long[::1] keys)

cdef class FairShares:
    cpdef double of(self, Py_ssize_t node) except? -1

cdef class RankedShares(FairShares):
    cdef long long[::1] _keys, _in_order
    cdef double[::1] _factors
    cdef Py_ssize_t _first

    @cython.locals(
        key=cython.longlong, low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t,
    )
    cpdef double of(self, Py_ssize_t node) except? -1

cdef class ListedShares(FairShares):
    cdef double[::1] _by_node

    cpdef double of(self, Py_ssize_t node) except? -1
