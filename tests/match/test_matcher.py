"""The matcher against a model of plain sets: claims, releases in part, status, copies, saved states."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

import simsched as ss
from simsched.errors import ConfigError, FormatError
from tests.reference.outlines import outline_cluster
from tests.reference.rsets import units_of

JOBSPEC = ss.Jobspec.from_shape

#: Four nodes of two racks; node 3 has no gpus, and its cores begin with 4.
OUTLINE = """
cluster0
  rack0
    node0 rank=0
      core0 size=4
      gpu0 size=2
    node1 rank=1 properties=fast
      core0 size=4
      gpu0 size=2
  rack1
    node2 rank=2
      core0 size=3
      gpu0 size=1
    node3 rank=3 properties=fast
      core0 size=6
"""
CLUSTER = outline_cluster(OUTLINE)
HAS = {0: {"core": 4, "gpu": 2}, 1: {"core": 4, "gpu": 2}, 2: {"core": 3, "gpu": 1}, 3: {"core": 6, "gpu": 0}}
FAST = {1, 3}


class Model:
    """Who has which unit, as sets: what a matcher must agree with."""

    def __init__(self):
        self.units = {}
        self.down = set()

    def free(self, rank, kind):
        taken = {u for units in self.units.values() for u in units}
        return [n for n in range(HAS[rank][kind]) if (rank, kind, n) not in taken]

    def is_idle(self, rank):
        return not any(r == rank for units in self.units.values() for r, _, _ in units)

    def after(self, end, ends):
        """The model of the time when all that end by then have ended."""
        later = Model()
        later.down = self.down
        later.units = {id_: units for id_, units in self.units.items() if ends[id_] > end}
        return later

    def could(self, wants, *, ever=False):
        """Whether ``(slots, cores, gpus, whole, fast)`` fits: by counting copies node by node."""
        slots, cores, gpus, whole, fast = wants
        copies = 0
        for rank in HAS:
            if (fast and rank not in FAST) or (rank in self.down and not ever):
                continue
            free = {k: HAS[rank][k] if ever else len(self.free(rank, k)) for k in ("core", "gpu")}
            if whole:
                idle = ever or self.is_idle(rank)
                copies += idle and free["core"] >= cores and free["gpu"] >= gpus
            else:
                each = [free["core"] // cores] + ([free["gpu"] // gpus] if gpus else [])
                copies += min(each)
        return copies >= slots


def shape_of(wants):
    slots, cores, gpus, whole, _ = wants
    content = f"[core={cores};gpu={gpus}]" if gpus else f"core={cores}"
    return f"slot={slots}/node/{content}" if whole else f"slot={slots}/{content}"


#: slots, cores, gpus, whole nodes, fast nodes only
WANTS = st.tuples(
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from([False, False, True]),
)


class MatcherMachine(RuleBasedStateMachine):
    """Random claims, releases, status changes; the model's sets are checked after each."""

    jobs = Bundle("jobs")

    def __init__(self):
        super().__init__()
        self.model = Model()
        self.matcher = None

    @rule(
        policy=st.sampled_from(
            ["first", "lonode", "hinode", "bestfit", "worstfit", "low", "high", "locality"]
        )
    )
    def begin(self, policy):
        if self.matcher is None:
            self.matcher = ss.Matcher(CLUSTER, policy=policy)

    @rule(
        target=jobs,
        wants=WANTS,
    )
    def match(self, wants):
        self.begin("first")
        jobspec = JOBSPEC(shape_of(wants), constraint="fast" if wants[4] else None)
        foretold = self.matcher.feasible_now(jobspec)
        answer = self.matcher.match(jobspec)
        assert bool(answer) == self.model.could(wants) == bool(foretold)
        assert bool(self.matcher.satisfiable(jobspec)) == self.model.could(wants, ever=True)
        if not answer:
            assert isinstance(answer, ss.Busy) == self.model.could(wants, ever=True)
            return multiple()
        assert answer.R == foretold.R == self.matcher.allocation(answer.id)
        self.accept(answer, wants)
        return answer.id

    def accept(self, answer, wants):
        """R names what was asked for, and nothing that is taken, down, or against the constraint."""
        slots, cores, gpus, whole, fast = wants
        units = units_of(answer.R)
        ranks = set(answer.R.ranks)
        assert not ranks & self.model.down
        assert not fast or ranks <= FAST
        assert answer.R.nslots == slots
        assert sum(kind == "core" for _, kind, _ in units) == slots * cores
        assert sum(kind == "gpu" for _, kind, _ in units) == slots * gpus
        for rank, kind, unit in units:
            assert unit in self.model.free(rank, kind)
        if whole:
            assert len(ranks) == slots
            units = {(r, kind, n) for r in ranks for kind, count in HAS[r].items() for n in range(count)}
        self.model.units[answer.id] = units

    @rule(target=jobs, wants=WANTS, data=st.data())
    def reserve(self, wants, data):
        """Claimed at once, or told the first expected end after which it fits."""
        self.begin("first")
        ends = {id_: data.draw(st.integers(1, 5)) for id_ in sorted(self.model.units)}
        jobspec = JOBSPEC(shape_of(wants), duration=10, constraint="fast" if wants[4] else None)
        answer = self.matcher.match_or_reserve(jobspec, now=0, ends=ends)
        if answer:
            self.accept(answer, wants)
            return answer.id
        later = [end for end in sorted(set(ends.values())) if self.model.after(end, ends).could(wants)]
        assert answer.start == (later[0] if later else None)
        assert (answer.R is None) == (not later)
        if later:
            assert (answer.R.starttime, answer.R.nslots) == (later[0], wants[0])
        return multiple()

    @rule(job=consumes(jobs))
    def release(self, job):
        if job in self.model.units:
            assert self.matcher.release(job) is None
            del self.model.units[job]

    @rule(job=jobs, data=st.data(), as_r=st.booleans())
    def release_part(self, job, data, as_r):
        """A shard goes back: by ranks, or by the R of these ranks."""
        if job not in self.model.units:
            return
        rset = self.matcher.allocation(job)
        ranks = data.draw(st.sets(st.sampled_from(list(rset.ranks)), min_size=1))
        part = rset.shard(ss.Idset.from_ids(ranks)) if as_r else ranks
        kept = self.matcher.release(job, part)
        left = {unit for unit in self.model.units[job] if unit[0] not in ranks}
        if left:
            assert set(kept.ranks) == set(rset.ranks) - ranks
            self.model.units[job] = left
        else:
            assert kept is None
            del self.model.units[job]

    @rule(
        ranks=st.sets(st.integers(0, 3), min_size=1), status=st.sampled_from(["up", "up", "down", "drained"])
    )
    def set_status(self, ranks, status):
        self.begin("first")
        changed = self.matcher.set_status(status, ranks=ss.Idset.from_ids(ranks))
        before = set(self.model.down)
        self.model.down = before - ranks if status == "up" else before | ranks
        assert changed == len(before ^ self.model.down)

    @rule()
    def save_and_restore(self):
        self.begin("first")
        self.matcher = ss.Matcher.restore(CLUSTER, json.loads(json.dumps(self.matcher.save())))

    @rule()
    def try_on_a_copy(self):
        """What happens to a copy does not happen here."""
        self.begin("first")
        twin = self.matcher.copy()
        for id_ in list(self.matcher.allocations):
            twin.release(id_)
        twin.set_status("up", ranks="0-3")
        assert twin.match(JOBSPEC("slot=4/node"))
        twin._check()

    @invariant()
    def agrees_with_the_model(self):
        if self.matcher is None:
            return
        self.matcher._check()
        assert set(self.matcher.allocations) == set(self.model.units)
        free = self.matcher.available.free
        for rank in HAS:
            for kind in ("core", "gpu"):
                expected = 0 if rank in self.model.down else len(self.model.free(rank, kind))
                assert free[kind][rank] == expected


TestMatcher = MatcherMachine.TestCase
TestMatcher.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


# --- stories --------------------------------------------------------------------------------


def test_match_or_reserve_tells_the_earliest_start(tiny):
    matcher = ss.Matcher(tiny)
    matcher.match(JOBSPEC("slot=3/node", duration=100), starttime=0)
    matcher.match(JOBSPEC("slot/node", duration=30), starttime=10)
    later = matcher.match_or_reserve(JOBSPEC("slot=2/node", duration=60), now=20)
    assert (later.status, later.start, later.id) == ("busy", 100, None)
    assert (later.R.starttime, later.R.expiration, str(later.R.ranks)) == (100, 160, "0-1")
    assert matcher.match_or_reserve(JOBSPEC("slot/node"), now=20).start == 40
    assert matcher.match_or_reserve(JOBSPEC("slot/node"), now=20, ends={1: 25}).start == 25
    matcher.release(2)
    now = matcher.match_or_reserve(JOBSPEC("slot/node", duration=60), now=20)
    assert (now.status, now.start, now.id) == ("matched", 20, 3)
    assert isinstance(matcher.match_or_reserve(JOBSPEC("slot=9/node"), now=20), ss.Infeasible)


def test_a_reservation_behind_jobs_without_an_end_has_no_start(tiny):
    matcher = ss.Matcher(tiny)
    matcher.match(JOBSPEC("slot=4/node"))
    later = matcher.match_or_reserve(JOBSPEC("slot/node"), now=5)
    assert (later.status, later.start, later.R) == ("busy", None, None)


def test_a_rack_that_is_held_goes_back_with_its_last_node():
    matcher = ss.Matcher(CLUSTER)
    rack = matcher.match(JOBSPEC("slot/rack"))
    assert str(rack.R.ranks) == "0-1"
    kept = matcher.release(rack.id, "0")
    assert str(kept.ranks) == "1"
    matcher._check()
    assert matcher.match(JOBSPEC("rack=2/core")).status == "busy"
    assert matcher.release(rack.id, "1") is None
    assert matcher.match(JOBSPEC("rack=2/core"))
    matcher._check()


def test_licences_go_back_with_the_last_node():
    matcher = ss.Matcher(outline_cluster(OUTLINE + "  license0 size=2\n"))
    got = matcher.match(JOBSPEC("slot=2/[core=3;license]"))
    assert got.R.scheduling == {"writer": "simsched", "pools": {"/cluster0/license0": "0-1"}}
    matcher.release(got.id, "0")
    assert matcher.match(JOBSPEC("slot/license")).status == "busy"
    matcher.release(got.id, "1")
    assert matcher.match(JOBSPEC("slot/license"))
    matcher._check()


def test_shared_units_are_free_for_those_who_share(four):
    matcher = ss.Matcher(four)
    ids = [matcher.match(JOBSPEC("node=1/core=4{-x}")).id for _ in range(2)]
    assert matcher.match(JOBSPEC("slot=16/core")).status == "busy"
    assert matcher.match(JOBSPEC("slot=4/node")).status == "busy"
    matcher.release(ids[0])
    assert matcher.match(JOBSPEC("slot=13/core")).status == "busy"
    matcher.release(ids[1])
    assert matcher.match(JOBSPEC("slot=16/core"))
    matcher._check()


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda m: m.release(7), "there is no allocation with id 7"),
        (lambda m: m.release(1, "3"), "allocation 1 is not on rank 3"),
        (lambda m: m.release(1, ""), "there are no ranks of allocation 1 to release"),
        (lambda m: m.release(1, "9"), "the cluster has no rank 9 \\(expected ranks 0-3\\)"),
        (lambda m: m.allocation(7), "there is no allocation with id 7"),
        (
            lambda m: m.set_status("broken", ranks="0"),
            "unknown status 'broken' \\(expected one of up, down, drained\\)",
        ),
        (lambda m: m.set_status("down", ranks="0-99"), "the cluster has no rank 4"),
        (lambda m: m.set_status("down", hosts="n[0-1],x9"), "the cluster has no host 'x9'"),
        (
            lambda m: ss.Matcher(m.cluster, rules="flux"),
            "unknown dialect 'flux' \\(expected one of rfc14",
        ),
    ],
)
def test_what_cannot_be_meant_is_said(four, do, message):
    matcher = ss.Matcher(four)
    matcher.match(JOBSPEC("slot=5/core"))
    with pytest.raises(ConfigError, match=message):
        do(matcher)
    matcher._check()
    assert list(matcher.allocations) == [1]


def test_status_by_host_and_rank(four):
    matcher = ss.Matcher(four)
    assert matcher.set_status("drained", hosts="n[0-1]", ranks="1-2") == 3
    assert str(matcher.match(JOBSPEC("slot/node")).R.ranks) == "3"


def test_jobs_on_a_node_that_goes_down_keep_it_until_they_end(four):
    matcher = ss.Matcher(four)
    job = matcher.match(JOBSPEC("slot=2/core"))
    matcher.set_status("down", ranks="0")
    matcher.release(job.id)
    assert matcher.available.free["core"].tolist() == [0, 4, 4, 4]
    matcher.set_status("up", ranks="0")
    assert matcher.available.free["core"].tolist() == [4, 4, 4, 4]
    matcher._check()


def test_ids_and_ends_survive_a_saved_state(tiny):
    matcher = ss.Matcher(tiny, policy="random", seed=5)
    matcher.match(JOBSPEC("slot=2/core", duration=9), starttime=1)
    matcher.match(JOBSPEC("node=2/core"))
    again = ss.Matcher.restore(tiny, json.loads(json.dumps(matcher.save())))
    assert again.ends == {1: 10}
    assert again.save() == matcher.save()
    ours, theirs = matcher.match(JOBSPEC("slot/core")), again.match(JOBSPEC("slot/core"))
    assert (ours.id, ours.R) == (theirs.id, theirs.R)
    again._check()


def spoiled(saved, **changes):
    return {**saved, **changes}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: {}, "not a saved state"),
        (lambda s: {**s, "format": 2}, "the state has format 2"),
        (lambda s: {**s, "cluster": {"targets": 3, "totals": {}}}, "saved on another cluster"),
        (lambda s: {**s, "policy": "best"}, "unknown match policy 'best'"),
        (lambda s: {**s, "allocations": [{"id": 1}]}, r"allocations\[0\]: this is not a saved allocation"),
        (
            lambda s: {**s, "allocations": s["allocations"] * 2},
            r"allocations\[1\]: it claims resources that do not exist or are taken",
        ),
        (lambda s: {**s, "down": "7"}, "not a saved state"),
        (lambda s: {**s, "generator": {}}, "not a saved state"),
        (
            lambda s: {**s, "allocations": [{**s["allocations"][0], "targets": "0-99"}]},
            r"allocations\[0\]: this is not a saved allocation",
        ),
        (
            lambda s: {
                **s,
                "allocations": [
                    {**s["allocations"][0], "held": [{"type": "core", "banks": "0", "units": 9}]}
                ],
            },
            r"allocations\[0\]: this is not a saved allocation",
        ),
    ],
)
def test_a_state_that_was_never_saved_is_refused(tiny, spoil, message):
    matcher = ss.Matcher(tiny)
    matcher.match(JOBSPEC("slot=3/core"))
    with pytest.raises(ss.errors.SimschedError, match=message) as caught:
        ss.Matcher.restore(tiny, spoil(matcher.save()))
    assert isinstance(caught.value, FormatError | ConfigError)


def test_answers_as_json(tiny):
    matcher = ss.Matcher(tiny)
    got = matcher.match(JOBSPEC("slot/core", duration=5), starttime=100)
    assert got.to_dict() == {"status": "matched", "id": 1, "start": 100, "R": got.R.to_dict()}
    assert matcher.match(JOBSPEC("slot=99/core")).to_dict()["status"] == "infeasible"
    assert repr(got) == "<Matched 1 from 100 s: rank0/core0>"


def test_feasible_in_one_call(tiny):
    assert ss.feasible(tiny, JOBSPEC("slot=4/node"))
    assert ss.feasible(tiny, JOBSPEC("slot=4/node"), now=True)
    assert not ss.feasible(tiny, JOBSPEC("slot=5/node"), now=True)


def test_a_seed_below_zero_is_refused():
    with pytest.raises(ss.ConfigError, match="seed is -1"):
        ss.Matcher(ss.load_cluster("tiny"), policy="random", seed=-1)
