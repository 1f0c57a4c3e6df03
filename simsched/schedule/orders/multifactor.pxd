# The types with which `multifactor.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.orders.fair_share cimport FairShares, UsageLedger

cdef class Multifactor:
    cdef object _rules, _shared_at, _rule
    cdef double[::1] _since, _fixed, _rates
    cdef long long[::1] _nodes
    cdef FairShares _shares
    cdef readonly object lasting
    cdef dict _moved, _running
    cdef list _ages, _share_factors
    cdef double _slack
    cdef UsageLedger _ledger

    @cython.locals(
        at=cython.double, slope=cython.double, lowest=cython.double, highest=cython.double,
        numbers=cython.longlong[:], total=double[::1], since=double[::1], fixed=double[::1],
        nodes=cython.longlong[::1], shares=FairShares, weight=cython.double, least=cython.double, most=cython.double, place=cython.Py_ssize_t,
    )
    cpdef keys(self, table, jobs, now)
    cpdef epoch(self, now)
    cpdef FairShares fair_shares(self, at)
    cpdef begin(self, Py_ssize_t job, now)
    cpdef charge(self, table, Py_ssize_t job, seconds, now)
