# The types with which `conservative.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.pass_context cimport PassContext
from simsched.schedule.profile cimport end_of

@cython.locals(first=cython.double, start=cython.double)
cdef double _first(dict starts) except? -1
cdef double _soon(PassContext context) except? -1
