# The types with which `environment.py` is compiled; without a compiler nothing reads this file.
cdef class FutureEvents:
    cdef public object env, over, peek, now, here
    cdef object _origin, _schedule
    cdef dict _handlers
    cdef list _calls, _spare
    cdef long long _entered
    cdef bint _closing

    cpdef take_over(self, FutureEvents other)
    cpdef at(self, time, long long order, kind, payload=*)
    cpdef _fire(self, call)
