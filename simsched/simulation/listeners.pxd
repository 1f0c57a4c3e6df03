# The types with which `listeners.py` is compiled; without a compiler nothing reads this file.
cdef class Listener:
    pass
