# The types with which `easy.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.pass_context cimport PassContext
from simsched.schedule.supply cimport Supply

@cython.locals(supply=Supply)
cpdef let_pass(PassContext context, shadow, jobs)
