# The types with which `reservations.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.profile cimport Profile, TimedClaim
from simsched.schedule.supply cimport Supply

cdef class Turns:
    cdef Profile _profile
    cdef list _jobs
    cdef Py_ssize_t _at
    cdef const long long[:] _kinds
    cdef const double[:] _seconds
    cdef set _barred

cdef class CountedReservations:
    cdef Supply _supply
    cdef Profile _profile
    cdef object _kinds, _kind, _seconds
    cdef dict _places
    cdef bint _follows

    cpdef earliest(self, job, before=*)
    cpdef reserve(self, job, start)
    cpdef withdraw(self, job)
    cpdef start_of(self, job)
    cpdef bint could_now(self, job) except -1
    @cython.locals(profile=Profile, mine=TimedClaim)
    cpdef begin(self, job)
    cpdef started(self, job)
