# The types with which `run_selection.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.state.selection cimport LazySelection

cdef class RunSelection(LazySelection):
    cdef readonly object kind, request
    cdef readonly list runs
    cdef readonly long long units
    cdef object _made

    @cython.locals(each=cython.longlong, content=dict, nodes=cython.longlong)
    cpdef tuple sizes(self)

@cython.locals(
    found=cython.longlong, before=cython.longlong, at=cython.Py_ssize_t, first=cython.longlong, last=cython.longlong
)
cdef long long touched(list runs, long long each) except? -1
