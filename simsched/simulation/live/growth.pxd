# The types with which `growth.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.simulation.engine cimport Engine
from simsched.simulation.jobs.prepare cimport Joined, Prepared
from simsched.simulation.listeners cimport Listener

cdef class Arrivals(Listener):
    cdef Engine _engine
    cdef Growth _growth
    cdef object _disruption
    cdef list _heap
    cdef long long _counted
    cdef set _withdrawn
    cdef public dict ids
    cdef public bint endless
    cdef double _coming

    cpdef hand_in(self, job)
    @cython.locals(heap=list, withdrawn=set)
    cpdef expect(self)
    cdef _enter(self, time)
    @cython.locals(engine=Engine, heap=list, withdrawn=set, tickets=list, jobs=list)
    cpdef _on_submission(self, _)
    cdef _expect(self, list names)
    cdef _forget(self, list names)

cdef class Growth:
    cdef Engine _engine
    cdef object _config
    cdef public Prepared prepared
    cdef public list jobs, handed_in, renewals
    cdef object _expected

    @cython.locals(engine=Engine, prepared=Prepared, joined=Joined)
    cpdef Py_ssize_t extend(self, jobs, refused=*) except -1
    cpdef refuse(self, job)
