# The types with which `limit_keeper.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.queue cimport WaitingQueue
from simsched.simulation.engine cimport Engine
from simsched.simulation.limits.limit_counters cimport Cohort, LimitCounter, LimitTable
from simsched.simulation.listeners cimport Listener

cdef double inf

cdef class LimitedJobs:
    cdef LimitTable _limits
    cdef object _prepared, _groups, _reads
    cdef readonly list counters, cohorts
    cdef readonly dict submitted, held
    cdef dict _by_place, _by_names, _verdicts, _alike

    @cython.locals(limits=LimitTable, number=cython.Py_ssize_t, cohorts=list, verdicts=dict, rejected=dict,
        kinds=list, durations=list)
    cpdef join(self, jobs)
    cpdef Cohort of(self, Py_ssize_t job)

cdef class LimitKeeper(Listener):
    cdef Engine _engine
    cdef LimitedJobs _jobs
    cdef object _spells
    cdef list _durations
    cdef double _wake
    cdef bint _changed
    cdef dict _allocated, _running, _outside
    cdef set _behind
    cdef WaitingQueue _queue
    cdef readonly bint blocks
    cdef readonly set gone, inside
    cdef readonly dict refused

    cpdef bint may_enter(self, job, now) except -1
    @cython.locals(counter=LimitCounter)
    cpdef ended(self, job, now, result, reason)
    @cython.locals(counter=LimitCounter)
    cdef _take_in(self, job)
    @cython.locals(counter=LimitCounter)
    cdef LimitCounter _first_full(self, job)
    @cython.locals(cohort=Cohort, queue=WaitingQueue)
    cpdef add(self, job, group)
    @cython.locals(cohort=Cohort)
    cpdef bint allows(self, job, selection, now) except -1
    cpdef before_pass(self, now)
    @cython.locals(cohort=Cohort, counter=LimitCounter)
    cpdef started(self, job, now)
    @cython.locals(other=Cohort)
    cdef _bar_over(self, LimitCounter counter, now)
    @cython.locals(counter=LimitCounter, asked=double)
    cdef list _count(self, job, Cohort cohort, now, end)
    @cython.locals(cohort=Cohort, counter=LimitCounter, asked=double, more=double)
    cpdef released(self, job, now, way)
    @cython.locals(counter=LimitCounter)
    cdef LimitCounter _first_over(self, Cohort cohort)
    @cython.locals(groups=double[:], at=cython.Py_ssize_t, cohort=Cohort)
    cpdef columns(self, jobs)
