# The types with which `r_text.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.simulation.record.units_text cimport UnitsText

cdef class PlainText:
    cdef dict _pools, _of_mask
    cdef object _index, _tables, _place, _prefix
    cdef bint _plain, _in_runs
    cdef list _numbers, _properties, _ranks, _upto
    cdef set _types
    cdef UnitsText _units_text

    cpdef str text(self, selection, str begin, str end, str last)
    @cython.locals(targets=list)
    cdef str _of_claim(self, selection, str begin, str end, str last)
    cdef bint _has_runs(self, kind) except -1
    @cython.locals(
        runs=list, each=cython.longlong, units=cython.longlong, slots=cython.longlong, low=cython.longlong, ranks=str,
        single=cython.bint, entries=str, opened=str, closed=str,
    )
    cdef str _of_runs(self, selection, str begin, str end, str last)
    @cython.locals(
        text=list, of_mask=dict, low=cython.longlong, last=cython.longlong, behind=cython.longlong,
        first=cython.longlong, hosts=list, groups=dict, ranks=str,
    )
    cdef tuple _grouped(self, selection)
    @cython.locals(text=list, upto=list, found=list, at=cython.Py_ssize_t, low=cython.longlong, high=cython.longlong)
    cdef str _ranks_of(self, list runs)
    cdef str _units_of(self, kind, mask)
