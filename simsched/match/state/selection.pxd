# The type with which `selection.py` is compiled; without a compiler nothing reads this file.
cdef class LazySelection:
    pass
