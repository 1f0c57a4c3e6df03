# The types with which `recorder.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.profiles.plan cimport Plan
from simsched.simulation.record.allocation_log cimport AllocationLog

cdef class Recorder:
    cdef public list ids, eligible, start, end, result, promised, down, failures
    cdef public tuple counts, pools
    cdef public object backfilled, events, later, _times, _counts
    cdef public dict reasons, _late
    cdef public AllocationLog log
    cdef Py_ssize_t _width

    @cython.locals(nodes=list, cores=list, gpus=list, slots=list)
    cpdef begin(self, Py_ssize_t job, now, selection, bint backfilled)
    @cython.locals(late=dict)
    cpdef tick(self, now, Plan plan, queued, demand)
