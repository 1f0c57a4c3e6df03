# The types with which `queue_groups.py` is compiled; without a compiler nothing reads this file.
cdef class QueueGroups:
    cdef object _prepared, _config, _predictions, _begins
    cdef public dict parked, magnets, taken
    cdef public object queued_cores, limits, admission, priority
    cdef public long long barred
    cdef public list groups, shares

    cpdef add(self, job)
