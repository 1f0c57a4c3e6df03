# The types with which `live_job.py` is compiled; without a compiler nothing reads this file.
cdef class LiveJob:
    cdef object _sim, _selection, _index, _started, _ended, _changed
    cdef bint _withdrawn
    cdef public object job, number, ticket

    cpdef note_resources(self, selection)
    cpdef note_change(self)
    cpdef note_start(self, selection)
    cpdef note_end(self)
