# The types with which `placed.py` is compiled; without a compiler nothing reads this file.
from simsched.match.state.selection cimport LazySelection

cdef class Placed(LazySelection):
    cdef readonly object kind, claim, bits, targets
    cdef readonly list parts, sums
    cdef readonly tuple holds
    cdef readonly bint counted
    cdef object _made

    cpdef numbers(self)
    cpdef tuple sizes(self)
