# The types with which `queue_groups.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.job_table cimport JobTable
from simsched.schedule.orders.multifactor cimport Multifactor
from simsched.schedule.queue cimport WaitingQueue
from simsched.simulation.jobs.prepare cimport Joined, Prepared

cdef class QueueGroups:
    cdef Prepared _prepared
    cdef object _config, _predictions
    cdef Multifactor _begins
    cdef public dict parked, magnets, taken
    cdef public object queued_cores, limits, admission, priority
    cdef public long long barred
    cdef public list groups, shares

    @cython.locals(queue=WaitingQueue)
    cpdef add(self, job)
    @cython.locals(table=JobTable, first=cython.Py_ssize_t, queue=WaitingQueue)
    cpdef enroll(self, Joined joined)
    cpdef charge(self, job, seconds, now)
    cpdef begin(self, started, now)
