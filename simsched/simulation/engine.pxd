# The types with which `engine.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.pass_context cimport PassContext
from simsched.schedule.profiles.plan cimport Plan
from simsched.simulation.queue_groups cimport QueueGroups

cdef class Engine:
    cdef public object prepared, config, recorder, future, progress, on, predictions
    cdef public Plan plan
    cdef public QueueGroups queues
    cdef public dict generators, parts, suspended
    cdef public bint stopped
    cdef bint _begun, _each_event, _early_last

    cpdef take_in(self, payload=*)
    cpdef submit(self, job, now)
    cpdef enter_end(self, job, end)
    @cython.locals(due=cython.bint)
    cpdef _on_end(self, job)
    cpdef _finish(self, job, now, result, reason=*)
    cpdef _release(self, job, now, way)
    @cython.locals(early=cython.bint, context=PassContext)
    cpdef _free(self, job, now)
    cpdef settle(self)
    cpdef _on_pass(self, payload)
    @cython.locals(queues=QueueGroups, context=PassContext, started=list)
    cpdef _pass(self, now)
    @cython.locals(queues=QueueGroups)
    cpdef begin(self, started, now)
    cpdef _enter_wake(self, time)
