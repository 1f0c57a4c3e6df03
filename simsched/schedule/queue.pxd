# The types with which `queue.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel
from simsched.schedule.job_table cimport JobTable
from simsched.schedule.orders.multifactor cimport Multifactor

cdef class WaitingQueue:
    cdef readonly object order
    cdef readonly bint static
    cdef object _room, _spare, _keys
    cdef JobTable _table
    cdef Multifactor _priority
    cdef long long[::1] _jobs, _chosen
    cdef double[::1] _key_of
    cdef Py_ssize_t _count
    cdef double _as_of
    cdef bint _own, _lasts, _tiered
    cdef list _unkeyed
    cdef public list fresh, gone
    cdef readonly set barred
    cdef readonly object now

    @cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _place(self, long long job) except -1
    @cython.locals(at=cython.Py_ssize_t)
    cdef Py_ssize_t _find(self, long long job) except -2
    @cython.locals(
        found=cython.longlong, least=cython.double, key=cython.double, count=cython.Py_ssize_t,
        at=cython.Py_ssize_t,
    )
    cdef long long _first(self) except -1
    @cython.locals(jobs=cython.longlong[::1])
    cdef _find_keys(self)
    cpdef ordered(self, jobs)
    @cython.locals(
        waiting=cython.longlong[::1], jobs=cython.longlong[::1], count=cython.Py_ssize_t, at=cython.Py_ssize_t,
    )
    cpdef behind(self, long long first, Kernel kernel, kinds, judged, double now, double time, long long most)
    @cython.locals(as_of=cython.double)
    cpdef sort(self, now)
    @cython.locals(table=JobTable, keys=cython.double[::1])
    cdef bint _is_before(self, long long one, long long job) except -1
    cdef _fill(self, jobs)
    @cython.locals(at=cython.Py_ssize_t)
    cpdef hide(self, jobs)
    cpdef Py_ssize_t next(
        self, Kernel kernel, Py_ssize_t at, kinds, judged, double now, double time, long long most,
    ) except -1
    @cython.locals(count=cython.Py_ssize_t, at=cython.Py_ssize_t)
    cpdef add(self, job)
    @cython.locals(count=cython.Py_ssize_t)
    cdef _put(self, Py_ssize_t at, long long job)
    @cython.locals(count=cython.Py_ssize_t)
    cdef _take(self, Py_ssize_t at)
    @cython.locals(at=cython.Py_ssize_t)
    cpdef remove(self, job)
    @cython.locals(end=cython.Py_ssize_t, at=cython.Py_ssize_t)
    cpdef enroll(self, Py_ssize_t first)
    cdef list _fixed_keys(self, Py_ssize_t first, Py_ssize_t end)
