# The types with which `allocation_log.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.simulation.record.r_text cimport PlainText

cdef class AllocationLog:
    cdef list _ids, _durations, _closing, _texts, _lines
    cdef object _index, _policies
    cdef PlainText _plain
    cdef dict _closings
    cdef public object sink

    @cython.locals(made=AllocationLog)
    cpdef AllocationLog detached(self)
    cpdef alloc(self, long long job, now, selection)
    cdef _grant(self, long long job, now, selection, begin, end)
    @cython.locals(text=str)
    cpdef release(self, long long job, now)
    @cython.locals(id_text=str, lines=list)
    cdef _write(self, long long job, str event, now, str text)

@cython.locals(whole=cython.longlong)
cdef str _number(value)
