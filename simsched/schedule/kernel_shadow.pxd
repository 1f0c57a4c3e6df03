# The types with which `kernel_shadow.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel
from simsched.schedule.profiles.plan cimport Plan

cdef class KernelShadow:
    cdef readonly object job
    cdef readonly bint extra
    cdef Kernel _kernel
    cdef object _start, _now, _other, _exact
    cdef long long _seen, _exact_at

    @cython.locals(kernel=Kernel, plan=Plan, ends=list, jobs=list, ended=cython.longlong)
    cpdef time(self, supply)
    @cython.locals(kernel=Kernel)
    cpdef limits(self, supply)
    @cython.locals(kernel=Kernel)
    cpdef fit_beside(self, supply, job)
