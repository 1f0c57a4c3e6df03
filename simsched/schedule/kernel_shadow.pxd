# The types with which `kernel_shadow.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel
from simsched.match.kernel_kinds cimport KernelKinds
from simsched.schedule.profiles.plan cimport Plan
from simsched.schedule.supply cimport Supply

cdef class KernelShadow:
    cdef readonly object job
    cdef readonly bint extra
    cdef Kernel _kernel
    cdef object _start, _now, _other, _exact
    cdef long long _seen, _exact_at

    @cython.locals(kernel=Kernel, plan=Plan, ends=list, jobs=list, ended=cython.longlong)
    cpdef time(self, Supply supply)
    @cython.locals(kernel=Kernel)
    cpdef limits(self, Supply supply)
    @cython.locals(kernel=Kernel, kinds=KernelKinds, kind=cython.longlong)
    cpdef fit_beside(self, Supply supply, job)
