# The types with which `kernel.py` is compiled; without a compiler nothing reads this file.
cimport cython

cdef int NOW, THEN, REST, HEAD, BLOCK, ABSENT, SHARED

@cython.locals(count=cython.longlong)
cdef long long ones(unsigned long long word) noexcept
cdef unsigned long long without_lowest(unsigned long long word, long long count) noexcept
@cython.locals(
    skipped=cython.longlong, at=cython.longlong, rest=cython.ulonglong, have=cython.longlong, few=cython.longlong
)
cdef void choose(
    unsigned long long[::1] words, long long low, long long high, long long units, bint last,
    unsigned long long[::1] bits, long long to,
) noexcept
@cython.locals(i=cython.longlong)
cpdef choose_rows(unsigned long long[::1] words, long long width, const long long[:] numbers, bint last)
@cython.locals(
    whole=cython.longlong, cells=cython.longlong, pools=cython.longlong, named=cython.bint, at=cython.longlong,
    i=cython.longlong, cell=cython.longlong, w=cython.longlong,
)
cpdef long long change(
    long long[::1] units, long long[::1] use, unsigned long long[::1] words, const long long[::1] word,
    const long long[::1] claim, const unsigned long long[::1] bits, long long sign,
)
@cython.locals(i=cython.Py_ssize_t, alone=cython.longlong)
cpdef long long touch(long long[::1] use, const long long[:] targets, long long sign)
@cython.locals(i=cython.Py_ssize_t)
cpdef shift(long long[::1] numbers, const long long[:] places, const long long[:] amounts, long long sign)

cdef class Kernel:
    cdef readonly Py_ssize_t targets, width, demands
    cdef object written
    cdef readonly bint last
    cdef readonly bint owned
    cdef readonly long long[::1] leaf, column, shut, idle, most, whole, begin, type, per, order, demand, amount
    cdef readonly long long[::1] level, distinct, alone, times, inner, inner_type, inner_per, vertices, vertex, full
    cdef readonly long long[::1] hosted
    cdef long long[::1] row_of, column_units
    cdef bint told
    cdef readonly bint divided
    cdef readonly unsigned char[::1] may
    cdef readonly long long[::1] units, use
    cdef unsigned char[::1] held
    cdef long long[::1] copies, rank, hosting
    cdef long long blocks
    cdef long long[::1] total
    cdef readonly object table, totals
    cdef object all_bits
    cdef unsigned long long[::1] words, bits
    cdef long long[::1] word, sum
    cdef long long chosen
    cdef long long[::1] number, given
    cdef readonly object all_claims
    cdef long long[::1] part
    cdef long long[::1] claims
    cdef readonly long long shared
    cdef readonly long long[::1] store
    cdef readonly long long top
    cdef public object draft
    cdef readonly long long first, spare
    cdef long long[::1] then, use_then, row, mine, mark, no_units, no_targets
    cdef unsigned char[::1] held_then
    cdef bint bare
    cdef readonly long long epoch, left
    cdef object kinds, seconds
    cdef const long long[:] kind_of
    cdef const double[:] judged
    cdef long long[::1] refused

    cdef long long _free(self, long long cell, int state) noexcept
    @cython.locals(at=cython.longlong, cell=cython.longlong)
    cdef bint _passes(self, long long n, long long idle, int state) noexcept
    @cython.locals(
        copies=cython.longlong, base=cython.longlong, i=cython.longlong, per=cython.longlong,
        have=cython.longlong, t=cython.longlong, at=cython.longlong, cell=cython.longlong,
    )
    cdef long long _host(self, long long d, long long n, int state) noexcept
    @cython.locals(
        level=cython.longlong, of=cython.longlong, count=cython.longlong, total=cython.longlong, v=cython.longlong,
        copies=cython.longlong, i=cython.longlong, t=cython.longlong, have=cython.longlong, at=cython.longlong,
        distinct=cython.longlong, number=cython.longlong,
    )
    cdef long long host_within(self, long long d, long long n, long long[::1] free, long long base) noexcept
    @cython.locals(i=cython.Py_ssize_t)
    cpdef recount(self, const long long[:] targets)
    @cython.locals(
        d=cython.longlong, at=cython.longlong, copies=cython.longlong, before=cython.longlong, block=cython.longlong,
    )
    cdef void _count(self, long long n) noexcept
    cpdef permit(self, const unsigned char[::1] may)
    cpdef bint fits(self, long long kind)
    @cython.locals(d=cython.longlong)
    cpdef bint place(self, long long kind)
    @cython.locals(
        wanted=cython.longlong, top=cython.longlong, to=cython.longlong, base=cython.longlong, i=cython.longlong,
        n=cython.longlong, copies=cython.longlong,
    )
    cdef bint _place(self, long long d, long long left, int state)
    @cython.locals(d=cython.longlong, i=cython.Py_ssize_t, cell=cython.longlong)
    cpdef bint place_on(
        self, long long kind, const long long[:] targets, const long long[:] numbers, const long long[:] units
    )
    @cython.locals(top=cython.longlong, to=cython.longlong, i=cython.longlong)
    cdef void _finish(self, long long d, long long count, int state) noexcept
    @cython.locals(i=cython.Py_ssize_t)
    cpdef tuple placement(self, Py_ssize_t draws)
    @cython.locals(
        first=cython.longlong, i=cython.longlong, t=cython.longlong, per=cython.longlong, place=cython.longlong,
        base=cython.longlong, low=cython.longlong, high=cython.longlong, left=cython.longlong, at=cython.longlong,
        cell=cython.longlong, have=cython.longlong, units=cython.longlong, to=cython.longlong, drawn=cython.longlong,
        low_word=cython.longlong, high_word=cython.longlong,
    )
    cdef long long _draw(self, long long d, long long count, long long begin, int state) noexcept
    @cython.locals(old=cython.longlong[::1], at=cython.longlong)
    cdef _make_room(self, long long size)
    @cython.locals(i=cython.longlong)
    cdef long long _move(self, const long long[::1] old, long long begin, long long stop, long long to) noexcept
    cpdef start(self, long long job, selection)
    cdef _write(self, selection)
    @cython.locals(at=cython.longlong)
    cpdef end(self, long long job)
    cdef long long _place_of(self, long long job) noexcept
    @cython.locals(
        at=cython.longlong, targets=cython.longlong, whole=cython.longlong, cells=cython.longlong,
        units=cython.longlong,
    )
    cpdef tuple claim(self, long long job)
    @cython.locals(alone=cython.longlong, whole=cython.longlong, i=cython.longlong)
    cpdef long long apply(self, const long long[::1] claim, const unsigned long long[::1] bits, int sign)
    cpdef set_free(self, long long cell, long long target, long long units)
    @cython.locals(
        d=cython.longlong, time=cython.double, end=cython.double, r=cython.Py_ssize_t, at=cython.longlong,
    )
    cpdef long long shadow(self, long long kind, double now, list ends, list jobs) except -3
    @cython.locals(
        d=cython.longlong, pools=cython.longlong, targets=cython.longlong, whole=cython.longlong,
        cells=cython.longlong, i=cython.longlong, n=cython.longlong, copies=cython.longlong,
    )
    cdef void _shift(self, long long at, int sign) noexcept
    @cython.locals(d=cython.longlong)
    cpdef bint beside(self, long long kind)
    cpdef bint lets(self, selection)
    cdef bint _lets(self) noexcept
    @cython.locals(
        d=cython.longlong, targets=cython.longlong, whole=cython.longlong, cells=cython.longlong, i=cython.longlong,
        pools=cython.longlong,
    )
    cdef _set_aside(self)
    cpdef bint is_refused(self, long long kind)
    cpdef refuse(self, long long kind)
    @cython.locals(
        count=cython.Py_ssize_t, known=cython.Py_ssize_t, job=cython.longlong, kind=cython.longlong,
        d=cython.longlong, amount=cython.longlong,
    )
    cpdef Py_ssize_t next(
        self, const long long[:] jobs, Py_ssize_t at, kinds, judged, double now, double time, long long most,
    ) except -1
