# The types with which `free_runs.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.state.run_selection cimport RunSelection

cdef class FreeRuns:
    cdef readonly object kind
    cdef readonly dict total
    cdef readonly list runs
    cdef long long each
    cdef tuple content

    @cython.locals(runs=list, found=list, at=cython.Py_ssize_t, left=cython.longlong, size=cython.longlong)
    cpdef list lowest(self, long long units)
    @cython.locals(
        runs=list, found=list, last=cython.Py_ssize_t, at=cython.Py_ssize_t, end=cython.longlong,
        behind=cython.longlong, lost=cython.longlong, stop=cython.longlong,
    )
    cpdef long long claim(self, RunSelection selection) except? -1
    @cython.locals(
        runs=list, found=list, each=cython.longlong, gained=cython.longlong, at=cython.Py_ssize_t, i=cython.Py_ssize_t,
        low=cython.longlong, high=cython.longlong, before=cython.bint, behind=cython.bint, start=cython.longlong,
        end=cython.longlong,
    )
    cpdef long long release(self, RunSelection selection) except? -1
    cdef _count(self, long long units)

@cython.locals(end=cython.Py_ssize_t, middle=cython.Py_ssize_t)
cdef Py_ssize_t first_at_least(list runs, long long number, Py_ssize_t begin) except -1
@cython.locals(found=cython.longlong)
cpdef long long whole(long long low, long long high, long long each) noexcept
