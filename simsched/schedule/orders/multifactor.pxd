# The types with which `multifactor.py` is compiled; without a compiler nothing reads this file.
cimport cython
from libc cimport math

from simsched.schedule.orders.fair_share cimport FairShareRule, UsageLedger

cdef class Multifactor:
    cdef object _rules
    cdef double[::1] _since, _fixed, _rates, _shares
    cdef long long[::1] _nodes
    cdef readonly double period
    cdef double _slack, _least, _most, _shared_at
    cdef bint _rounds
    cdef dict _moved, _running
    cdef list _ages, _share_factors
    cdef UsageLedger _ledger
    cdef FairShareRule _rule

    @cython.locals(
        at=cython.double, slope=cython.double, lowest=cython.double, highest=cython.double, since=double[::1],
        fixed=double[::1], nodes=cython.longlong[::1], shares=double[::1], urgencies=cython.longlong[:],
        weight=cython.double, least=cython.double, most=cython.double, place=cython.Py_ssize_t,
        job=cython.longlong,
    )
    cpdef enter(self, table, const long long[::1] jobs, double[::1] keys, double now)
    cpdef double epoch(self, double now) except? -1
    cpdef double[::1] fair_shares(self, double at)
    cpdef begin(self, Py_ssize_t job, now)
    cpdef charge(self, table, Py_ssize_t job, seconds, now)
