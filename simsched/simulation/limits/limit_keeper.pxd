# The types with which `limit_keeper.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.simulation.limits.limit_counters cimport Cohort, LimitCounter, LimitTable
from simsched.simulation.listeners cimport Listener

cdef class LimitedJobs:
    cdef LimitTable _limits
    cdef object _prepared, _groups
    cdef readonly list counters, cohorts
    cdef readonly dict submitted, held
    cdef dict _by_place, _by_names, _verdicts, _alike
    cdef int _reads

    @cython.locals(
        limits=LimitTable, cohorts=list, verdicts=dict, rejected=dict, kinds=list, durations=list,
        number=cython.Py_ssize_t, names=tuple,
    )
    cpdef join(self, jobs)
    cpdef Cohort of(self, Py_ssize_t job)

cdef class LimitKeeper(Listener):
    cdef object _engine, _spells, _queue
    cdef LimitedJobs _jobs
    cdef set _behind
    cdef public set gone, inside
    cdef dict _allocated, _running, _outside
    cdef public dict refused
    cdef bint _changed
    cdef readonly bint blocks
    cdef list _durations
    cdef double _wake

    cpdef bint may_enter(self, job, now) except -1
    @cython.locals(counter=LimitCounter)
    cpdef ended(self, job, now, result, reason)
    @cython.locals(counter=LimitCounter)
    cdef _take_in(self, job)
    @cython.locals(counter=LimitCounter)
    cdef LimitCounter _first_full(self, job)
    @cython.locals(cohort=Cohort)
    cpdef add(self, job, group)
    @cython.locals(cohort=Cohort)
    cpdef bint allows(self, job, selection, now) except -1
    cpdef before_pass(self, now)
    @cython.locals(cohort=Cohort)
    cpdef started(self, job, now)
    @cython.locals(near=list, counter=LimitCounter, asked=cython.double)
    cdef list _count(self, job, Cohort cohort, now, end)
    @cython.locals(cohort=Cohort, counter=LimitCounter, asked=cython.double, more=cython.double)
    cpdef released(self, job, now, way)
    @cython.locals(counter=LimitCounter)
    cdef LimitCounter _first_over(self, Cohort cohort)
