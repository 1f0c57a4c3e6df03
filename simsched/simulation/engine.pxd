# The types with which `engine.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.pass_context cimport PassContext
from simsched.schedule.profiles.plan cimport Plan
from simsched.schedule.queue cimport WaitingQueue
from simsched.simulation.environment cimport FutureEvents
from simsched.simulation.jobs.prepare cimport Prepared
from simsched.simulation.listeners cimport Heard
from simsched.simulation.queue_groups cimport QueueGroups
from simsched.simulation.record.recorder cimport Recorder

cdef class RunProgress:
    # In the order of the class: it is that of the arguments, and of a checkpoint.
    cdef public list states
    cdef public dict ends
    cdef public long long submitted, done, passes, timers
    cdef public dict requeues
    cdef public object due
    cdef public double wake

cdef class Engine:
    cdef public Prepared prepared
    cdef public object config, predictions
    cdef public RunProgress progress
    cdef public Heard on
    cdef public FutureEvents future
    cdef public Recorder recorder
    cdef public Plan plan
    cdef public QueueGroups queues
    cdef public dict generators, parts, suspended
    cdef public bint stopped
    cdef bint _begun, _each_event, _early_last

    @cython.locals(jobs=list)
    cpdef take_place(self, Py_ssize_t first)
    @cython.locals(future=FutureEvents, progress=RunProgress, at=cython.Py_ssize_t, count=cython.Py_ssize_t)
    cpdef take_in(self, payload=*)
    cpdef submit(self, job, now)
    cpdef enter_end(self, job, end)
    @cython.locals(due=cython.bint)
    cpdef _on_end(self, job)
    @cython.locals(on=Heard, recorder=Recorder, progress=RunProgress)
    cpdef _finish(self, job, now, result, reason=*)
    cpdef _release(self, job, now, way)
    @cython.locals(early=cython.bint, context=PassContext)
    cpdef _free(self, job, now)
    @cython.locals(future=FutureEvents)
    cpdef settle(self)
    cpdef _on_pass(self, payload)
    @cython.locals(on=Heard, queues=QueueGroups, progress=RunProgress, queue=WaitingQueue, context=PassContext, started=list)
    cpdef _pass(self, now)
    @cython.locals(
        prepared=Prepared, on=Heard, queues=QueueGroups, recorder=Recorder, future=FutureEvents, states=list, ends=dict,
    )
    cpdef begin(self, started, now)
    cpdef _enter_wake(self, time)
