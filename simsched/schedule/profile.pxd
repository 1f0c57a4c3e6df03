# The types with which `profile.py` is compiled; without a compiler nothing reads this file.
cimport cython

from simsched.match.kernel cimport Kernel

cdef double NEVER
cdef unsigned long long FULL
cdef unsigned long long[::1] BIT
cdef long long[::1] PLACE

@cython.locals(end=cython.double)
cpdef double end_of(double start, double seconds) except -1

cdef class TimedClaim:
    cdef public double begin, end
    cdef readonly long long[::1] rows, copies

@cython.locals(claim=TimedClaim)
cdef TimedClaim _timed(double begin, double end, long long[::1] rows, long long[::1] copies)

cdef class Profile:
    cdef readonly Kernel kernel
    cdef readonly double now
    cdef readonly Py_ssize_t targets, demands
    cdef long long words, types, pools, width, spare, room, left, count
    cdef long long[::1] column, several, uses, order, rank, need, idle, whole, most, demand, amount, by, users, low, high, home
    cdef readonly dict running, reserved
    cdef list ends
    cdef long long[::1] slot, first, next, free, copies
    cdef double[::1] time, at, since, until
    cdef long long[::1] begin, stop, total, rise, change, row, unused
    cdef unsigned long long[::1] bits, word, mine
    cdef long long[::1] found, number, draft, placed, was, new, rose, climbs, turned
    cdef TimedClaim own
    cdef public bint short

    cdef void _give_back(self, long long a) noexcept
    @cython.locals(size=cython.longlong, i=cython.longlong, b=cython.longlong)
    cdef long long _split(self, long long a, double time) except -2
    @cython.locals(i=cython.longlong)
    cdef void _join(self, long long a, long long b) noexcept
    @cython.locals(a=cython.longlong, b=cython.longlong)
    cdef long long _head(self, long long n) noexcept
    @cython.locals(base=cython.longlong, low=cython.longlong, high=cython.longlong, middle=cython.longlong)
    cdef long long _step(self, long long d, double time) noexcept
    cpdef become(self, Profile other)
    @cython.locals(d=cython.longlong, base=cython.longlong, claim=TimedClaim)
    cpdef advance(self, double now)
    @cython.locals(rows=cython.longlong[::1], claim=TimedClaim)
    cpdef start(self, job, double end)
    cdef double _later(self, double end)
    @cython.locals(claim=TimedClaim)
    cpdef end(self, job)
    @cython.locals(claim=TimedClaim, before=cython.double)
    cpdef move_end(self, job, double end)
    @cython.locals(
        store=cython.longlong[::1], targets=cython.longlong, whole=cython.longlong, cells=cython.longlong,
        units=cython.longlong, rows=cython.longlong[::1], size=cython.longlong, to=cython.longlong,
        i=cython.longlong, n=cython.longlong, home=cython.longlong,
    )
    cdef long long[::1] _rows_of(self, job)
    @cython.locals(claim=TimedClaim)
    cpdef reserve(self, job, double begin, double end)
    @cython.locals(
        rows=cython.longlong[::1], numbers=cython.longlong[::1], size=cython.longlong, i=cython.longlong,
        same=cython.bint,
    )
    cdef _book(self, TimedClaim claim, double begin, double end)
    @cython.locals(claim=TimedClaim)
    cpdef withdraw(self, job)
    cpdef take(self, double begin, double end)
    @cython.locals(size=cython.longlong, i=cython.longlong, k=cython.longlong)
    cpdef take_targets(self, double begin, double end)
    @cython.locals(
        size=cython.longlong, to=cython.longlong, i=cython.longlong, n=cython.longlong, number=cython.longlong,
        k=cython.longlong, t=cython.longlong,
    )
    cdef void _write(self, long long d, double start, double end) noexcept
    @cython.locals(
        low=cython.longlong, high=cython.longlong, base=cython.longlong, i=cython.longlong, pool=cython.longlong,
        taken=cython.longlong,
    )
    cdef void _draw(self, long long to, long long t, long long units, long long v, long long of) noexcept
    @cython.locals(
        kernel=Kernel, target=cython.longlong, at=cython.longlong, of=cython.longlong, most=cython.longlong,
        left=cython.longlong, v=cython.longlong, copies=cython.longlong, pool=cython.longlong, i=cython.longlong,
    )
    cdef void _draw_within(self, long long d, long long n, long long number, long long to) noexcept
    @cython.locals(i=cython.longlong, d=cython.longlong, size=cython.longlong)
    cdef _shift(self, long long[::1] rows, double begin, double end, long long sign)
    @cython.locals(
        n=cython.longlong, low=cython.longlong, high=cython.longlong, a=cython.longlong, b=cython.longlong,
        before=cython.longlong, i=cython.longlong, d=cython.longlong, start=cython.longlong,
        last=cython.longlong, turned=cython.bint, was=cython.longlong, new=cython.longlong,
        rises=cython.longlong, copies=cython.longlong,
    )
    cdef _shift_target(self, long long[::1] rows, long long at, double begin, double end, long long sign)
    @cython.locals(base=cython.longlong, pool=cython.longlong, shut=cython.longlong)
    cdef bint _lacks(self, long long a) noexcept
    @cython.locals(i=cython.longlong)
    cdef bint _climbs(self, long long d, long long a, long long b) noexcept
    @cython.locals(
        base=cython.longlong, copies=cython.longlong, t=cython.longlong, per=cython.longlong, units=cython.longlong,
        several=cython.longlong, pool=cython.longlong,
    )
    cdef long long _hosts(self, long long a, long long d, long long n) noexcept
    @cython.locals(i=cython.longlong)
    cdef _note(self, long long d, double time, long long rises, long long more)
    @cython.locals(at=cython.longlong)
    cdef void _add(self, long long d, long long i, long long more) noexcept
    @cython.locals(
        size=cython.longlong, k=cython.longlong, base=cython.longlong, at=cython.longlong, row=cython.longlong,
        old=cython.longlong, w=cython.longlong,
    )
    cdef long long _insert(self, long long d, long long i, double time) except -1
    @cython.locals(back=cython.longlong, room=cython.longlong, k=cython.longlong)
    cdef long long _make_room(self, long long d) except -1
    @cython.locals(
        base=cython.longlong, i=cython.longlong, stop=cython.longlong, last=cython.double, more=cython.longlong,
        to=cython.longlong, k=cython.longlong, j=cython.longlong, drop=cython.bint,
    )
    cdef void _settle(self, long long d) noexcept
    @cython.locals(
        base=cython.longlong, i=cython.longlong, word=cython.longlong, bit=cython.ulonglong, cell=cython.longlong
    )
    cdef void _turn(self, long long n, long long d, long long a, double begin, double end) noexcept
    @cython.locals(
        d=cython.longlong, amount=cython.longlong, base=cython.longlong, i=cython.longlong, end=cython.double
    )
    cpdef bint may_now(self, long long kind, double seconds) except -1
    cpdef double earliest(self, long long kind, double seconds, double begin, double before) except -1
    @cython.locals(
        base=cython.longlong, stop=cython.longlong, start=cython.double, owned=cython.double, i=cython.longlong,
        j=cython.longlong, end=cython.double, limit=cython.double, missing=cython.longlong,
    )
    cdef double _search(self, long long d, long long amount, double seconds, double begin, double before) except -1
    @cython.locals(
        base=cython.longlong, low=cython.longlong, high=cython.longlong, owned=cython.double, row=cython.longlong,
        w=cython.longlong, left=cython.longlong, to=cython.longlong, word=cython.ulonglong, bit=cython.ulonglong,
        n=cython.longlong, copies=cython.longlong,
    )
    cdef bint _fits(self, long long d, long long amount, long long i, double start, double end) noexcept
    @cython.locals(
        a=cython.longlong, b=cython.longlong, copies=cython.longlong, mine=cython.bint, here=cython.longlong,
        at=cython.longlong, rows=cython.longlong[::1], i=cython.longlong,
    )
    cdef long long _least(self, long long n, long long d, long long most, double start, double end) noexcept
    @cython.locals(
        a=cython.longlong, b=cython.longlong, to=cython.longlong, i=cython.longlong, own=TimedClaim, at=cython.longlong, beside=cython.bint,
        units=cython.longlong,
    )
    cdef void _gather(self, long long n, double start, double end) noexcept
    @cython.locals(own=TimedClaim, b=cython.longlong)
    cdef bint _is_own(self, long long a, double end) noexcept
    @cython.locals(
        rows=cython.longlong[::1], size=cython.longlong, i=cython.longlong, n=cython.longlong, start=cython.double
    )
    cpdef double move(self, TimedClaim claim, long long kind, double seconds, double before) except -1
    @cython.locals(
        size=cython.longlong, pools=cython.longlong, targets=cython.longlong[::1],
        units=cython.longlong[::1], i=cython.longlong, pool=cython.longlong,
    )
    cpdef bint place(self, long long kind) except -1
    @cython.locals(job=cython.longlong, kind=cython.longlong, before=cython.double)
    cpdef Py_ssize_t next_now(
        self, const long long[:] jobs, Py_ssize_t at, const long long[:] kinds, const double[:] seconds
    ) except -1
