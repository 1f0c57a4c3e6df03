# The types with which `fair_share.py` is compiled; without a compiler nothing reads this file.
cimport cython
from libc cimport math

cdef long long _DROPPED, _HALF, _RANK

cdef class UsageLedger:
    cdef readonly double half_life, reset
    cdef readonly bint at_end
    cdef double _scale, _due
    cdef object _origin, _turn
    cdef list _waiting
    cdef double[::1] _done, _rate, _begun, _known, _usage

    cpdef begin(self, Py_ssize_t node, double rate, now)
    cpdef end(self, Py_ssize_t node, double rate, begin, now)
    @cython.locals(grown=cython.double, usage=double[::1], rate=double[::1], known=double[::1], node=cython.Py_ssize_t)
    cpdef double[::1] magnified(self, double time)
    @cython.locals(taken=cython.Py_ssize_t, at=cython.Py_ssize_t, charge=tuple)
    cdef int _take(self, double time) except -1
    @cython.locals(done=double[::1], begun=double[::1], before=cython.double, start=cython.double)
    cdef int _charge(self, now, Py_ssize_t node, double rate, begin) except -1
    @cython.locals(since=cython.double)
    cdef double _grown(self, double time) except? -1

cdef class FairShareRule:
    cpdef double[::1] factors(self, double[::1] own)

cdef class RankedTree(FairShareRule):
    cdef bint _across
    cdef double[::1] _by_share, _sums, _level, _factors, _of_rank
    cdef long long[::1] _parents, _charged, _begins, _nodes, _above, _below, _is_account, _bits
    cdef long long[::1] _order, _keys, _before, _first, _ranks, _tied

    @cython.locals(depth=cython.Py_ssize_t)
    cpdef double[::1] factors(self, double[::1] own)
    @cython.locals(
        sums=double[::1], level=double[::1], parents=cython.longlong[::1], charged=cython.longlong[::1],
        by_share=double[::1], node=cython.Py_ssize_t, above=cython.double, last=cython.double,
        up=cython.longlong, total=cython.double,
    )
    cdef int _compare(self, double[::1] own) except -1
    @cython.locals(
        order=cython.longlong[::1], keys=cython.longlong[::1], before=cython.longlong[::1],
        first=cython.longlong[::1], entry_above=cython.longlong[::1], below=cython.longlong[::1],
        nodes=cython.longlong[::1], bits=cython.longlong[::1], is_account=cython.longlong[::1],
        ranks=cython.longlong[::1], at=cython.Py_ssize_t, place=cython.Py_ssize_t, entry=cython.longlong,
        up=cython.longlong, level=cython.longlong, rank=cython.longlong, key=cython.longlong,
    )
    cdef int _sort(self, Py_ssize_t above, Py_ssize_t begin, Py_ssize_t end) except -1
    @cython.locals(
        order=cython.longlong[::1], keys=cython.longlong[::1], ranks=cython.longlong[::1],
        tied=cython.longlong[::1], above=cython.longlong[::1], nodes=cython.longlong[::1],
        of_rank=double[::1], found=double[::1], has_users=cython.bint, before=cython.longlong,
        rank=cython.longlong, factor=cython.double, ties=cython.bint, place=cython.Py_ssize_t, entry=cython.longlong,
        key=cython.longlong,
    )
    cdef int _rank(self, Py_ssize_t begin, Py_ssize_t end) except -1

cdef class ClassicFairShare(FairShareRule):
    cdef object _tree, _dampening, _part, _shares, _inherits
