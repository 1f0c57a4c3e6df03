# The types with which `submission.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef class SubmissionReader:
    cdef public set ids
    cdef dict _specs, _tasks
    cdef object _last

    @cython.locals(fields=dict)
    cpdef read(self, request, duration, runtime, at, now, attributes)
    cdef _jobspec(self, request)
    cdef _next_id(self)

cpdef read_seconds(name, value)
cdef dict _checked(attributes)
