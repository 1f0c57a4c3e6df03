# The types with which `plan.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel
from simsched.match.kernel_kinds cimport KernelKinds
from simsched.match.state.availability cimport Availability
from simsched.match.state.free_runs cimport FreeRuns

cdef class Plan:
    cdef Availability _available
    cdef list _ends, _jobs
    cdef public bint counts_only, keeps_ids
    cdef readonly bint all_up
    cdef readonly long long idle
    cdef readonly object index, outages
    cdef readonly dict total, held, until
    cdef readonly FreeRuns runs
    cdef readonly KernelKinds kinds
    cdef readonly Kernel kernel
    cdef readonly list profiles

    cpdef claim(self, job, selection, end)
    cpdef release(self, job)
    @cython.locals(at=cython.Py_ssize_t)
    cdef _enter(self, job, end)
    @cython.locals(at=cython.Py_ssize_t, ends=list, jobs=list)
    cdef _leave(self, job, double end)
    cpdef bint overrun(self, double now) except -1

@cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t, each=cython.double)
cdef Py_ssize_t place_of(list ends, double end, bint behind) except -1
