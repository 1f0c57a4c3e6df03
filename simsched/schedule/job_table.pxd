# The types with which `job_table.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef class JobTable:
    cdef public list by_kind, kind_sizes, kinds, requests, durations, limits, judged, units
    cdef public object single, content, types, demand
    cdef public object kinds_array, submits, durations_array, judged_array, sizes, priorities, users, banks
    cdef public object tiers, partitions, partition_targets, deadlines, starts, places
    cdef list _kind_units
    cdef dict _users, _banks
    cdef JobTable _predicted
    cdef long long[::1] kind_of, size_of, priority_of, user_of, bank_of, tier_of, partition_of
    cdef double[::1] submit_of, duration_of

    @cython.locals(length=cython.Py_ssize_t, place=cython.Py_ssize_t)
    cpdef bint make_place(self, Py_ssize_t more) except -1
    @cython.locals(at=cython.Py_ssize_t, users=dict, banks=dict)
    cpdef add(
        self, Py_ssize_t kind, double submit, duration, judged, long long priority, user, bank,
        long long tier=*, long long partition=*, deadline=*,
    )
    @cython.locals(made=JobTable)
    cpdef with_predictions(self)
