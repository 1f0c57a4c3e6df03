"""The profile against the plain definition, compiled and interpreted."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from math import inf, nextafter
from pathlib import Path

import numpy as np
import pytest

from simsched._version import kernel_is_compiled
from simsched.match import kernel
from simsched.schedule import profile
from tests.reference.plain_profile import IDLE, OPEN, UP, Demand, Inner, PlainProfile

MANY = 1 << 40


def interpreted(module):
    """A module as its source is interpreted."""
    path = Path(module.__file__).parent / f"{module.__name__.rpartition('.')[2]}.py"
    spec = spec_from_file_location(f"{module.__name__}_as_it_is", path)
    made = module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


BUILDS = {"interpreted": (interpreted(kernel).Kernel, interpreted(profile).Profile)}
if kernel_is_compiled():
    BUILDS["compiled"] = kernel.Kernel, profile.Profile


class Case:
    """A machine, a kernel, running jobs and a profile, all drawn at random, beside the plain definition."""

    def __init__(self, seed, build, targets=None):
        self.rng = r = np.random.default_rng(seed)
        kernel_class, profile_class = BUILDS[build]
        n = targets or int(r.choice([1, 2, 3, 5, 6, 70]))
        widths = r.integers(1, 4, int(r.integers(1, 4)))
        self.columns = np.concatenate([[0], np.cumsum(widths)])
        width, types = self.columns[-1], len(widths)
        self.divided = bool(r.random() < 0.6)
        """Whether demands take vertices within targets."""
        leaves = np.arange(n * width).reshape(n, width)
        leaves[r.random(leaves.shape) < 0.2] = -1
        self.units = r.integers(0, 9, n * width)
        self.leaves, self.order = leaves, r.permutation(n)
        self.demands, rows, draws = [], [], []
        for _ in range(r.integers(1, 5)):
            gate, whole = int(r.choice([UP, OPEN, IDLE])), r.random() < 0.25
            need = np.where(r.random(types) < 0.6, r.integers(0, 5, types), 0)
            if whole:
                gate = IDLE
            elif gate == UP and not need.any():
                need[0] = 1  # as units of no target are not asked for
            most = 1 if whole or r.random() < 0.3 else MANY
            if not need.any() and not whole:
                most = 1
            may = r.random(n) < 0.8
            inner = self.drawn_inner(types) if self.divided and not whole and r.random() < 0.7 else None
            if inner is not None:
                need = np.zeros(types, np.int64) if inner.alone else np.where(inner.need > 0, 0, need)
            self.demands.append(Demand(need, gate, most, whole, may, inner))
            rows.append((gate, most, whole))
            draws.append([(t, int(each)) for t, each in enumerate(need) if each or whole])
        self.kinds = [
            (int(r.integers(len(self.demands))), int(r.choice([1, 1, 2, 3, 5, 12]))) for _ in range(6)
        ]
        self.use, self.held = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        free = self.units.copy()
        count = int(r.integers(1, 4))
        vertices = np.where(leaves < 0, -1, r.integers(-1, count, leaves.shape))
        full = np.where(leaves >= 0, self.units[leaves], 0)
        inner = [d.inner and self.as_given(d.inner) for d in self.demands]
        within = kernel.Within(np.full((1, n), count), vertices[None], full, inner)
        self.kernel = kernel_class(
            leaves,
            self.columns.tolist(),
            rows,
            draws,
            np.array([d.may for d in self.demands], dtype=np.uint8),
            self.order,
            self.kinds,
            # no leaf pool has words: units are counted
            (free, self.use, self.held, np.zeros(0, np.uint64), np.zeros(n * width + 1, np.int64)),
            last=(last := bool(r.random() < 0.5)),
            written=None,  # every claim is placed here
            within=within if self.divided else None,
        )
        self.free = free
        self.pool = np.repeat(np.arange(types), widths)
        """The pool of each column: of all of one type, or each by itself."""
        if self.divided:
            self.pool = np.arange(width)
        self.capacity = np.zeros((n, self.pool[-1] + 1), np.int64)
        for column, pool in enumerate(self.pool):
            self.capacity[:, pool] += full[:, column]
        plain = [Demand(d.need, d.gate, d.most, d.whole, d.may[self.order], d.inner) for d in self.demands]
        pools = np.repeat(np.arange(types), widths) if self.divided else np.arange(types)
        self.plain = PlainProfile(self.capacity[self.order], plain, pools, vertices[self.order], last)
        self.running, self.number = {}, 0
        for _ in range(r.integers(0, 6)):
            self.start_somewhere()
        self.profile = profile_class(self.kernel)
        self.profile.advance(0)
        for job, end in self.running.items():
            self.profile.start(job, end)
        self.compare()

    def drawn_inner(self, types):
        """What a copy takes of vertices within a target, drawn at random."""
        r = self.rng
        need = np.where(r.random(types) < 0.6, r.integers(1, 4, types), 0)
        need[r.integers(types)] = 1
        return Inner(need, int(r.integers(1, 3)), bool(r.random() < 0.5), int(r.integers(1, 3)))

    def as_given(self, inner):
        """The same as a kernel is given it."""
        pairs = [(t, int(each)) for t, each in enumerate(inner.need) if each]
        return 0, inner.distinct, inner.alone, inner.times, pairs

    def seconds(self):
        return float(self.rng.choice([0, 1, 2, 3, 5, 8, 20, 50, inf]))

    def start_somewhere(self):
        """Start a job on the first places, in the kernel only; return it, or None if nothing fits."""
        kind = int(self.rng.integers(len(self.kinds)))
        if self.demands[self.kinds[kind][0]].inner is not None or not self.kernel.place(kind):
            return None  # the kernel does not place what takes vertices
        return self.claim(kind, self.plain.now + self.seconds())

    def claim(self, kind, end):
        """Claim the last placement of the kernel for a job."""
        claim, _, targets, *_ = self.kernel.placement(0)
        cells, units = claim[len(claim) - 2 * claim[3] :].reshape(2, -1)
        d = self.demands[self.kinds[kind][0]]
        self.free[cells] -= units
        self.use[targets] += 1
        self.held[targets] |= d.whole
        self.kernel.recount(targets)
        job = self.number = self.number + 1

        class Made:
            shared = ()

        self.kernel.draft = made = Made()
        self.kernel.start(job, made)
        taken = np.zeros_like(self.capacity)
        where, columns = np.nonzero(np.isin(self.leaves, cells) & (self.leaves >= 0))
        for n, column in zip(where, columns, strict=True):
            taken[n, self.pool[column]] += units[cells == self.leaves[n, column]].sum()
        touched = np.zeros(len(self.leaves), bool)
        touched[targets] = True
        at = self.order
        self.plain.take(f"running {job}", self.plain.now, end, units=taken[at])
        found = self.plain.claims[f"running {job}"]
        found.touches, found.shuts = touched[at], touched[at] & d.whole
        self.running[job] = end
        return job

    def release(self, job):
        ends, store = self.kernel.claim(job), np.array(self.kernel.store)
        targets, whole, cells, units = (store[begin:end] for begin, end in pairwise(ends))
        self.free[cells] += units
        self.use[targets] -= 1
        self.held[whole] = 0
        self.kernel.end(job)
        self.kernel.recount(targets)
        del self.running[job], self.plain.claims[f"running {job}"]

    def compare(self):
        """Compare the copies at each time, and look for a few kinds."""
        self.profile.check()
        present, known = np.zeros(len(self.demands), np.int64), {}
        for target in range(len(self.capacity)):
            n = self.order.tolist().index(target)
            times = self.profile.segments(target)
            present += times[0][2]
            for time, _, copies in times:
                if time not in known:
                    known[time] = [self.plain.copies(d, time) for d in range(len(self.demands))]
                assert copies == [each[n] for each in known[time]]
        for kind, (d, amount) in enumerate(self.kinds):
            now = self.plain.copies(d, self.plain.now).sum()
            assert present[d] == now
            assert self.profile.may_now(kind, 0) == (now >= amount)

    def look(self, kind, seconds, begin, before):
        """Search, compare, and return the start."""
        d, amount = self.kinds[kind]
        expected, place = self.plain.earliest(d, amount, seconds, begin, before)
        found = self.profile.earliest(kind, seconds, begin, before)
        assert found == expected
        if found < inf:
            self.is_place(place)
        if expected == self.plain.now:
            assert self.profile.may_now(kind, seconds)
        return found, place

    def is_place(self, place):
        targets, copies, units = self.profile.placement()
        some = place.copies.nonzero()[0]
        assert [(self.order[n], place.copies[n]) for n in some] == list(zip(targets, copies, strict=True))
        assert units.tolist() == place.units[some].reshape(-1).tolist()

    def act(self):
        """One change at random, in both."""
        r, plain, profile = self.rng, self.plain, self.profile
        what = int(r.integers(10))
        kind = int(r.integers(len(self.kinds)))
        d, amount = self.kinds[kind]
        reserved = [name for name in plain.claims if str(name).startswith("job")]
        if what < 4:
            begin = plain.now + float(r.choice([0, 0, 0, 1, 4]))
            before = float(r.choice([inf, inf, begin + 1, begin + 9, nextafter(begin, inf)]))
            seconds = self.seconds()
            start, place = self.look(kind, seconds, begin, before)
            if start < inf:
                end = max(start + seconds, nextafter(start, inf))
                if r.random() < 0.4:
                    end = np.ceil(end / 7) * 7
                name = f"job {self.number}"
                self.number += 1
                if r.random() < 0.25:
                    plain.take(f"shut {name}", start, end, targets=place.copies.nonzero()[0])
                    profile.take_targets(start, end)
                elif r.random() < 0.15:
                    plain.take(f"taken {name}", start, end, d, place)
                    profile.take(start, end)
                else:
                    plain.take(name, start, end, d, place)
                    plain.claims[name].kind = kind
                    profile.reserve(name, start, end)
        elif what == 4 and reserved:
            name = str(r.choice(reserved))
            profile.withdraw(name)
            del plain.claims[name]
        elif what == 5 and reserved:
            name = str(r.choice(reserved))
            claim = plain.claims[name]
            kind, seconds = claim.kind, self.seconds()
            d, amount = self.kinds[kind]
            before = float(r.choice([inf, claim.begin]))
            start, place = plain.earliest(
                d, amount, seconds, plain.now, min(before, claim.begin), beside=name
            )
            assert profile.move(profile.reserved[name], kind, seconds, before) == start
            if start < inf:
                end = max(start + seconds, nextafter(start, inf))
                plain.take(name, start, end, d, place)
                plain.claims[name].kind = kind
                self.is_place(place)
        elif what == 6:
            targets = r.choice(len(self.capacity), int(r.integers(1, 3)))
            begin, end = sorted(plain.now + r.integers(0, 20, 2))
            places = [self.order.tolist().index(target) for target in targets]
            plain.take(f"closed {self.number}", begin, max(end, begin), targets=places)
            self.number += 1
            profile.shut(np.unique(targets), begin, end)
        elif what == 7:
            now = plain.now + float(r.choice([0, 1, 2, 5]))
            for job in list(self.running):
                if r.random() < (0.7 if self.running[job] <= now else 0.2):
                    self.release(job)
                    profile.end(job)
            plain.now = now
            profile.advance(now)
        elif what == 8 and self.running:
            job = int(r.choice(list(self.running)))
            self.running[job] = end = plain.now + float(r.integers(-2, 30))
            plain.claims[f"running {job}"].end = end
            profile.move_end(job, end)
        elif what == 9:
            seconds = self.seconds()
            start, place = self.look(kind, seconds, plain.now, nextafter(plain.now, inf))
            if start == plain.now and self.demands[d].inner is None:
                assert profile.place(kind)
                assert self.kernel.placement(0)[2].tolist() == profile.placement()[0].tolist()
                job = self.claim(kind, plain.now + seconds)
                if not self.demands[d].whole:
                    found = plain.claims[f"running {job}"].units
                    assert self.divided or (found == place.units).all()
                    assert (found.sum(axis=1) == place.units.sum(axis=1)).all()
                profile.start(job, plain.now + seconds)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("seed", range(40))
def test_a_profile_equals_the_plain_definition(seed, build):
    case = Case(seed, build)
    for _ in range(60):
        case.act()
        case.compare()


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("seed", range(100, 116))
def test_a_copy_has_the_same_answers_and_leaves_the_first_alone(seed, build):
    case = Case(seed, build)
    twin = BUILDS[build][1](case.kernel)
    for _ in range(60):
        for _ in range(3):
            case.act()
        twin.become(case.profile)
        twin.check()
        for kind in 2 * [*range(len(case.kinds))]:  # as many as there is no room for at first
            seconds = case.seconds()
            start = twin.earliest(kind, seconds, 0, inf)
            if start < inf:
                twin.take(start, start + seconds)
        twin.check()
        case.compare()
        twin.become(case.profile)
        for kind in range(len(case.kinds)):
            seconds = case.seconds()
            assert twin.earliest(kind, seconds, 0, inf) == case.profile.earliest(kind, seconds, 0, inf)
