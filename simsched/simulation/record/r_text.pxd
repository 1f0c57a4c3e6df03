# The types with which `r_text.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.state.placed cimport Placed
from simsched.match.state.run_selection cimport RunSelection
from simsched.simulation.record.units_text cimport UnitsText

cdef class PlainText:
    cdef dict _pools, _of_mask
    cdef object _index, _tables, _place, _prefix
    cdef bint _plain, _in_runs
    cdef list _numbers, _properties, _ranks, _then, _upto
    cdef set _types
    cdef UnitsText _units_text

    cpdef str text(self, selection, str begin, str end, str last)
    @cython.locals(placed=Placed, targets=list, cells="const long long[:]", bits="const unsigned long long[::1]")
    cdef str _of_claim(self, selection, str begin, str end, str last)
    @cython.locals(content=dict)
    cdef bint _has_runs(self, kind) except -1
    @cython.locals(
        runs=list, units=cython.longlong, slots=cython.longlong, each=cython.longlong, upto=list,
        one=cython.ulonglong, full=cython.ulonglong, mask=cython.ulonglong, latest=cython.ulonglong, groups=dict,
        hosts=list, ranks=list, at=cython.Py_ssize_t, low=cython.longlong, high=cython.longlong,
        first=cython.longlong, behind=cython.longlong, before=cython.longlong, stop=cython.longlong,
        place=str, entries=str, opened=str, closed=str,
    )
    cdef str _of_runs(self, RunSelection selection, str begin, str end, str last)
    cdef _add(self, list ranks, long long first, long long behind)
    cdef str _units_of(self, kind, mask)
