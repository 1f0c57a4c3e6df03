# The types with which `pass_context.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.profiles.plan cimport Plan
from simsched.schedule.queue cimport WaitingQueue

cdef class PassContext:
    cdef public object table, supply, now, reservations, wake, limits
    cdef public Plan plan
    cdef public WaitingQueue queue
    cdef public bint released, moved
    cdef public list started, promised

    @cython.locals(queue=WaitingQueue, plan=Plan)
    cpdef bint start(self, job, selection, bint backfilled=*) except -1
    cpdef open(self, now)
    @cython.locals(queue=WaitingQueue, started=list)
    cpdef list close(self)
