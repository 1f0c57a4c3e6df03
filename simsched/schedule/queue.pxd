# The types with which `queue.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel

cdef class WaitingQueue:
    cdef readonly object order
    cdef readonly bint static
    cdef object _room, _table, _lasting, _as_of, _keys, _key
    cdef long long[::1] _jobs
    cdef double[::1] _key_of
    cdef Py_ssize_t _count
    cdef bint _own
    cdef list _rank, _unkeyed
    cdef public list fresh, gone
    cdef readonly set barred
    cdef readonly object now

    @cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _place(self, long long job) except -1
    @cython.locals(
        found=cython.longlong, least=cython.double, key=cython.double, count=cython.Py_ssize_t,
        at=cython.Py_ssize_t,
    )
    cdef long long _first(self) except -1
    @cython.locals(jobs=cython.longlong[::1], keys=double[:], at=cython.Py_ssize_t)
    cdef _find_keys(self)
    cdef bint _is_before(self, long long one, long long job) except -1
    cdef _fill(self, jobs)
    cpdef Py_ssize_t next(
        self, Kernel kernel, Py_ssize_t at, kinds, judged, double now, double time, long long most,
    ) except -1
    @cython.locals(count=cython.Py_ssize_t, at=cython.Py_ssize_t)
    cpdef add(self, job)
    @cython.locals(count=cython.Py_ssize_t)
    cdef _put(self, Py_ssize_t at, long long job)
    @cython.locals(count=cython.Py_ssize_t)
    cdef _take(self, Py_ssize_t at)
    cpdef remove(self, job)
