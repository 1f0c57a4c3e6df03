# The types with which `graph_supply.py` is compiled; without a compiler nothing reads this file.
from simsched.schedule.supply cimport Supply

cdef class GraphSupply(Supply):
    cpdef _matched(self, job, kind)
    cpdef candidates(self, jobs, shadow)
    cdef bint _counts_decide(self, job) except -1
