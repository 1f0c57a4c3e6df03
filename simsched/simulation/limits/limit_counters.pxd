# The types with which `limit_counters.py` is compiled; without a compiler nothing reads this file.
from simsched.schedule.queue cimport WaitingQueue

cdef class LimitTable:
    cdef readonly object rules, sizes
    cdef object _index
    cdef dict _arrays, _known, _units
    cdef bint _by_user, _by_account, _by_queue, _by_qos, _by_array, _by_gpu_type

    cpdef tuple names_of(self, job)
    cpdef tuple of(self, tuple names)
    cpdef amounts(self, request, duration)
    cpdef varies(self, request)
    cdef tuple _units_of(self, request)

cdef class LimitCounter:
    cdef readonly long long number
    cdef readonly object limit, kind, name
    cdef readonly tuple scope
    cdef readonly bint falls, lasts
    cdef readonly double most
    cdef public double free, used
    cdef public long long endless
    cdef readonly dict running, shown, held

    cpdef bint is_over(self, double asked, double now, gone=*) except -1

cdef class Cohort:
    cdef readonly long long number
    cdef readonly tuple binding, own
    cdef readonly object amounts
    cdef readonly dict asks
    cdef readonly list counted
    cdef readonly frozenset varies
    cdef readonly set jobs
    cdef readonly WaitingQueue queue
    cdef readonly LimitCounter over
    cdef readonly bint entered

    cpdef enter(self, WaitingQueue queue, LimitCounter over)
    cpdef wait_for(self, LimitCounter over)
    cpdef remove(self, job)
    cpdef leave(self)
