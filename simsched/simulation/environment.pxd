# The types with which `environment.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef class FutureEvents:
    cdef public object env, over, peek, now, here
    cdef object _origin, _schedule
    cdef double[::1] _time_of
    cdef long long[::1] _order_of
    cdef dict _handlers
    cdef list _entries, _posted, _spare
    cdef long long _entered
    cdef bint _closing

    cpdef take_over(self, FutureEvents other)
    cpdef at(self, time, long long order, kind, payload=*)
    @cython.locals(
        entries=list, time=cython.double, order=cython.longlong, at=cython.Py_ssize_t, up=cython.Py_ssize_t,
        times=cython.double[::1], orders=cython.longlong[::1],
    )
    cdef Py_ssize_t _enter(self, tuple entry) except -1
    @cython.locals(
        entries=list, time=cython.double, order=cython.longlong, at=cython.Py_ssize_t, down=cython.Py_ssize_t,
        count=cython.Py_ssize_t, times=cython.double[::1], orders=cython.longlong[::1],
    )
    cdef _take_first(self)
    cdef _post(self, tuple entry)
    @cython.locals(entries=list, posted=list)
    cpdef _fire(self, call)
