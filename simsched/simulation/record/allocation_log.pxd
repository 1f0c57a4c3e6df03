# The types with which `allocation_log.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.simulation.record.r_text cimport PlainText

cdef class AllocationLog:
    cdef object _ids, _durations, _index, _policies
    cdef PlainText _plain
    cdef list _queues, _events, _lines
    cdef dict _starts, _schedulers, _attributes, _texts
    cdef public object sink

    @cython.locals(made=AllocationLog)
    cpdef AllocationLog detached(self)
    cpdef alloc(self, long long job, now, selection)
    cpdef release(self, long long job, now)
    cdef _note(self, tuple event)
    @cython.locals(
        events=list, times=list, starts=list, resources=list, ends=list, expirations=list, texts=dict, queues=list,
        lines=list, attributes=dict, at=cython.Py_ssize_t, number=cython.Py_ssize_t, kind=cython.longlong,
        time=str, text=str, name=str, id_text=str, event=tuple,
    )
    cpdef _write_events(self)
