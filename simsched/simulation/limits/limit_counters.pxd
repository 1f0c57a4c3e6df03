# The types with which `limit_counters.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef class LimitCounter:
    cdef readonly object number, scope, limit, kind, name, most
    cdef readonly bint lasts
    cdef public object free, used, endless
    cdef readonly dict running, shown, held

cdef class Cohort:
    cdef readonly object number, binding, amounts, varies, own
    cdef readonly dict asks
    cdef readonly list falling, counted
    cdef readonly set jobs
    cdef readonly object queue, over
    cdef readonly bint entered

    cpdef remove(self, job)
    @cython.locals(counter=LimitCounter, near=list)
    cpdef list count(self, list asked_of)
    @cython.locals(counter=LimitCounter, risen=list)
    cpdef list uncount(self, list asked_of, amounts, seconds)
    @cython.locals(counter=LimitCounter)
    cpdef list holding(self)
    @cython.locals(counter=LimitCounter)
    cpdef leave(self)
