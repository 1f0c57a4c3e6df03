# The types with which `fcfs.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.schedule.pass_context cimport PassContext
from simsched.schedule.queue cimport WaitingQueue
from simsched.schedule.supply cimport Supply

@cython.locals(queue=WaitingQueue, supply=Supply)
cpdef start_in_order(PassContext context)
