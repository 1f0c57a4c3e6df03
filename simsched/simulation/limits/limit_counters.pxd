# The types with which `limit_counters.py` is compiled; without a compiler nothing reads this file.
cdef class LimitTable:
    cdef readonly object rules, sizes
    cdef object _index
    cdef bint _by_user, _by_account, _by_queue, _by_qos, _by_array, _by_gpu_type
    cdef dict _arrays, _known, _units

    cpdef tuple names_of(self, job)
    cpdef tuple of(self, tuple names)
    cpdef amounts(self, request, duration)
    cpdef varies(self, request)
    cdef tuple _units_of(self, request)

cdef class LimitCounter:
    cdef readonly long long number
    cdef readonly object scope, limit, kind, name
    cdef readonly bint falls, lasts
    cdef public double free, used
    cdef readonly double most
    cdef public long long endless
    cdef readonly dict running, shown, held

cdef class Cohort:
    cdef readonly long long number
    cdef readonly object amounts, varies, own, queue
    cdef readonly dict asks
    cdef readonly tuple binding
    cdef readonly set jobs
    cdef readonly LimitCounter over
    cdef readonly list counted
    cdef readonly bint entered

    cpdef remove(self, job)
    cpdef leave(self)
