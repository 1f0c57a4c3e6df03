# The types with which `listeners.py` is compiled; without a compiler nothing reads this file.
cdef class Listener:
    pass

cdef class Heard:
    cdef public tuple offered, joined, numbered, submitted, may_enter, may_queue, eligible, changed
    cdef public tuple before_pass, runs, begun, occupied, repeats, passed, suspended, resumed
    cdef public tuple resized, released, keeps, requeued, ended, cleaned, border, hit, goes_on
    cdef public tuple reasons, columns, tables, described, state, restore
