# The types with which `units_text.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef class UnitsText:
    cdef long long[::1] target, kind, first, ids, word, rank, place, seen
    cdef list names
    cdef long long turn

    @cython.locals(
        i=cython.Py_ssize_t, at=cython.Py_ssize_t, b=cython.Py_ssize_t, behind=cython.Py_ssize_t,
        before=cython.longlong, cell=cython.longlong, n=cython.longlong, kind=cython.longlong, low=cython.longlong,
        high=cython.longlong, first=cython.longlong, rest=cython.ulonglong,
        unit=cython.longlong, id_=cython.longlong, texts=list, found=str, step=cython.longlong, text=str,
        of=cython.longlong, was=cython.longlong, until=cython.longlong,
    )
    cpdef entries(self, list targets, const long long[:] cells, const unsigned long long[:] bits)
    @cython.locals(i=cython.Py_ssize_t, groups=dict)
    cdef str _grouped(self, list targets, list texts)
    @cython.locals(target=cython.longlong, rank=cython.longlong, low=cython.longlong, high=cython.longlong, found=str)
    cpdef str ranks(self, list targets)

cdef str _with_run(str found, long long low, long long high)
