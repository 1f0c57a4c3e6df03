# The types with which `conservative.py` is compiled; without a compiler nothing reads this file.
from simsched.schedule.pass_context cimport PassContext
from simsched.schedule.profile cimport end_of

cdef _first(dict starts)
cdef double _soon(PassContext context) except? -1
