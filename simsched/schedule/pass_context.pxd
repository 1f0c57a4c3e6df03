# The types with which `pass_context.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.job_table cimport JobTable
from simsched.schedule.profiles.plan cimport Plan
from simsched.schedule.queue cimport WaitingQueue
from simsched.schedule.supply cimport Supply

cdef class PassContext:
    cdef public JobTable table
    cdef public object now, reservations, promised, wake, limits
    cdef public Plan plan
    cdef public WaitingQueue queue
    cdef public Supply supply
    cdef public bint released, moved
    cdef public list started

    @cython.locals(queue=WaitingQueue, plan=Plan)
    cpdef bint start(self, job, selection, bint backfilled=*) except -1
    @cython.locals(supply=Supply, queue=WaitingQueue)
    cpdef open(self, now)
    @cython.locals(queue=WaitingQueue)
    cpdef list close(self)
