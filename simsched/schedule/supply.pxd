# The types with which `supply.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel
from simsched.match.kernel_kinds cimport KernelKinds
from simsched.schedule.job_table cimport JobTable
from simsched.schedule.profiles.plan cimport Plan
from simsched.schedule.queue cimport WaitingQueue

cdef class Supply:
    cdef public JobTable table
    cdef public object now, failed, policy, root
    cdef public Plan plan
    cdef readonly bint closes
    cdef object _calendar, _running, _trial

    cpdef KernelKinds kinds(self)
    @cython.locals(kinds=KernelKinds, kind=cython.longlong)
    cpdef could_start(self, job)
    @cython.locals(kinds=KernelKinds, kind=cython.longlong)
    cpdef fit(self, job)
    cpdef _matched(self, job, kind)
    cpdef Py_ssize_t next_fitting(self, WaitingQueue queue, Py_ssize_t at) except -1
    @cython.locals(kinds=KernelKinds)
    cpdef behind(self, WaitingQueue queue, first)
    cpdef candidates(self, jobs, shadow)

cdef class Passers:
    cdef Supply _supply
    cdef Kernel _kernel
    cdef const long long[:] _jobs
    cdef object _shadow
    cdef Py_ssize_t _at

    cdef Py_ssize_t _next(self, Py_ssize_t at, double time, long long most) except -1
