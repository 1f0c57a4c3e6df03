# The types with which `count_supply.py` is compiled; without a compiler nothing reads this file.
from simsched.schedule.supply cimport Supply

cdef class CountSupply(Supply):
    pass
