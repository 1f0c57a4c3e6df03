# The types with which `reservations.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel_kinds cimport KernelKinds
from simsched.schedule.job_table cimport JobTable
from simsched.schedule.profile cimport Profile, TimedClaim, end_of
from simsched.schedule.supply cimport Supply

cdef class Turns:
    cdef Profile _profile
    cdef JobTable _table
    cdef list _jobs
    cdef Py_ssize_t _at
    cdef dict _starts
    cdef set _barred

    @cython.locals(profile=Profile, table=JobTable, jobs=list, claim=TimedClaim, number=cython.longlong)
    cdef bint _has_next(self) except -1

cdef class CountedReservations:
    cdef Supply _supply
    cdef Profile _profile
    cdef JobTable _table
    cdef KernelKinds _kinds
    cdef dict _places
    cdef bint _follows

    @cython.locals(table=JobTable)
    cpdef double earliest(self, long long job, double before=*) except -1
    @cython.locals(now=cython.double, begin=cython.double, end=cython.double)
    cpdef reserve(self, long long job, double start)
    cpdef withdraw(self, job)
    cpdef double start_of(self, job) except -1
    cpdef bint could_now(self, long long job) except -1
    @cython.locals(
        profile=Profile, mine=TimedClaim, kind=cython.longlong, now=cython.double, seconds=cython.double
    )
    cpdef begin(self, long long job)
    cpdef started(self, long long job)
