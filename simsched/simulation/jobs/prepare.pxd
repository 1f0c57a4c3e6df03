# The types with which `prepare.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.job_table cimport JobTable

@cython.locals(
    odd=dict, tasks=list, ids=set, before=cython.double, most=cython.double, submit=cython.double,
    seconds=cython.double, at=cython.Py_ssize_t,
)
cpdef refuse_odd_jobs(jobs)

cdef class Prepared:
    cdef object _index, _config, _grace
    cdef bint _plays_log
    cdef list _requested
    cdef public object admission, conditions, judge, recorded, priority
    cdef public bytearray timeouts
    cdef public Kinds kinds
    cdef public bint counts_decide, limits_arrays
    cdef public JobTable table
    cdef public list jobs, submits, runtimes, durations, sizes
    cdef public dict rejected, holds, cancels
    cdef public set special

    @cython.locals(
        table=JobTable, kinds=Kinds, numbers=list, requests=list, entered=list, linked=list, sizes=list, first=cython.Py_ssize_t, at=cython.Py_ssize_t,
        kind=cython.Py_ssize_t, each=cython.bint, tier=cython.longlong, partition=cython.longlong,
    )
    cpdef extend(self, jobs, refused=*)
    cdef _times(self, job, duration)

cdef class Joined:
    cdef readonly Py_ssize_t first
    cdef readonly bint moved
    cdef readonly object counted, requests, priority

cdef class Kinds:
    cdef public object policy, sizes
    cdef public bint by_target
    cdef public list requests, reasons
    cdef object _index, _idle
    cdef dict _by_spec, _by_request
    cdef list _compiled

    @cython.locals(known=dict)
    cpdef list numbers(self, jobs)
    cpdef number(self, jobspec)
