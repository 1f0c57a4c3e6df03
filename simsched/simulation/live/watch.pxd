# The types with which `watch.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.simulation.listeners cimport Listener
from simsched.simulation.live.live_job cimport LiveJob

cdef class Watch(Listener):
    cdef object _simulation
    cdef public dict jobs, coming
    cdef public object calling
    cdef dict _callbacks
    cdef list _starts, _ends, _submits, _passes

    @cython.locals(live=LiveJob)
    cpdef numbered(self, tickets, first)
    cpdef submitted(self, job, now)
    @cython.locals(live=LiveJob)
    cpdef eligible(self, job, now)
    @cython.locals(live=LiveJob)
    cpdef begun(self, started, now)
    @cython.locals(live=LiveJob)
    cpdef ended(self, job, now, result, reason)
    cpdef passed(self, now)
    cdef _forget(self, LiveJob live)
