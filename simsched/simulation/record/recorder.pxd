# The types with which `recorder.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.profiles.plan cimport Plan
from simsched.simulation.record.allocation_log cimport AllocationLog

cdef class Recorder:
    cdef public list ids, eligible, start, end, promised, down, failures
    cdef public tuple counts, pools
    cdef public bytearray result, backfilled
    cdef public object events, later, _times, _counts
    cdef double[::1] _time_of
    cdef long long[::1] _count_of
    cdef public dict reasons
    cdef public AllocationLog log
    cdef Py_ssize_t _width, _ticks

    @cython.locals(nodes=list, cores=list, gpus=list, slots=list)
    cpdef begin(self, Py_ssize_t job, now, selection, bint backfilled)
    @cython.locals(nodes=list, cores=list, gpus=list, slots=list)
    cpdef extend(self, jobs)
    @cython.locals(row=cython.Py_ssize_t, counts=cython.longlong[::1], at=cython.Py_ssize_t, place=cython.Py_ssize_t)
    cpdef tick(self, now, Plan plan, long long queued, long long demand)
