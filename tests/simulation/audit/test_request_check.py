"""Whether what R names satisfies a request (A5), against the exhaustive matcher of ``tests/reference``.

What the engine gives is never refused.  What is changed by hand, a unit moved, dropped or
added, is judged as the oracle judges it, as long as siblings ask for different types.
"""

from __future__ import annotations

import json
import random

import pytest

import simsched as ss
from simsched.simulation.audit.inventory import Inventory
from simsched.simulation.audit.request_check import RequestCheck
from tests.reference.bruteforce import Claims, TooBigError, ancestors, is_target, matches_naming
from tests.reference.cases import CLUSTERS, FOLDERS, describe, random_request, to_jgf, to_r, to_shape
from tests.simulation.audit.tampering import audited, recorded
from tests.simulation.simworld import job, run

KINDS = ("flat", "tree", "network")


def loaded(graph, kind, folder):
    path = folder / f"{kind}.json"
    path.write_text(json.dumps(to_r(graph) if kind == "flat" else to_jgf(graph)))
    return ss.load_cluster(path)


def held_by(outcome):
    """rank → type → mask, as R says."""
    return {
        rank: {
            kind: sum(1 << unit for unit in ss.Idset.parse(ids)) for kind, ids in group["children"].items()
        }
        for group in outcome.R.to_dict()["execution"]["R_lite"]
        for rank in ss.Idset.parse(group["rank"])
    }


def units_of(graph):
    """(rank, type, unit) of everything that R can name and that is up."""
    found = set()
    for name, vertex in graph.items():
        target = next((t for t in ancestors(graph, name) if is_target(graph, t)), None)
        up = all(graph[above].up for above in ancestors(graph, name))
        if up and target and not graph.below[name] and vertex.type in {"core", "gpu"}:
            found |= {(graph[target].rank, vertex.type, unit) for unit in vertex.units}
    return found


def changed(rng, held, everything):
    """The holding with a unit moved, dropped or added."""
    mine = {(r, t, u) for r, ts in held.items() for t, mask in ts.items() for u in everything_bits(mask)}
    how, free = rng.choice(["move", "move", "drop", "add"]), sorted(everything - mine)
    if how != "add" and mine:
        gone = rng.choice(sorted(mine))
        mine.discard(gone)
        free = [unit for unit in free if unit[1] == gone[1]] if how == "move" else []
    if free:
        mine.add(rng.choice(free))
    found = {rank: {} for rank in held}
    for rank, type_, unit in mine:
        types = found.setdefault(rank, {})
        types[type_] = types.get(type_, 0) | 1 << unit
    return found


def everything_bits(mask):
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def is_exact(wants, *, in_slot=False):
    """Fixed counts, siblings of different types, pools that are not shared."""
    types = [types_in(want) for want in wants]
    apart = len(wants) < 2 or sum(map(len, types)) == len(set().union(*types))
    return apart and all(
        len(want.counts) == 1
        and (want.children or want.type == "slot" or (in_slot if want.exclusive is None else want.exclusive))
        and not (want.children and want.exclusive is False and in_slot)
        and is_exact(want.children, in_slot=in_slot or want.type == "slot")
        for want in wants
    )


def types_in(want):
    if want.type in FOLDERS and (want.exclusive or not want.children):
        return {*FOLDERS, "core", "gpu"}  # whole: all that is in it
    return {want.type, *(t for child in want.children for t in types_in(child))} - {"slot"}


def judged(seed, folder):
    """Yield (story, whether it is as the engine gave it, exact, the oracle's verdict, the audit's)."""
    kind = KINDS[seed % 3]
    rng = random.Random(f"{kind} {seed}")
    graph = CLUSTERS[kind](rng)
    cluster = loaded(graph, kind, folder)
    inventory, everything = Inventory.of(cluster), units_of(graph)
    for _ in range(3):
        request = random_request(rng, graph)
        spec = ss.Jobspec.from_shape(to_shape(request), duration=60)
        outcome = ss.Matcher(cluster).match(spec)
        held = held_by(outcome) if isinstance(outcome, ss.Matched) else None
        for number in range(5 if held is not None else 0):
            tried = changed(rng, held, everything) if number else held
            named = {r: {t: set(everything_bits(m)) for t, m in ts.items()} for r, ts in tried.items()}
            try:
                truth = next(matches_naming(graph, request, named, Claims(), None), None) is not None
            except TooBigError:
                continue
            story = f"{kind} {seed} {describe(graph)} | {to_shape(request)} | {named}"
            yield (
                story,
                not number,
                is_exact(request),
                truth,
                RequestCheck(inventory).fault(spec.resources, tried),
            )


def check(seeds, folder):
    seen = dict.fromkeys([(True, True), (True, False)], 0)
    for seed in seeds:
        for story, honest, exact, truth, fault in judged(seed, folder):
            assert not (honest and fault), f"{story}\n{fault}"
            if exact:
                assert truth == (fault is None), f"{story}\noracle {truth}, audit {fault}"
                seen[True, truth] += 1
    return seen


@pytest.mark.slow
def test_the_audit_judges_as_the_oracle_does(tmp_path):
    seen = check(range(600), tmp_path)
    assert min(seen.values()) > 50, seen


@pytest.mark.slow
def test_the_audit_judges_as_the_oracle_does_at_length(tmp_path):
    check(range(1000, 1600), tmp_path)


# --- planted, one by one ---------------------------------------------------------------------------------


@pytest.fixture
def tampered(tmp_path):
    """Audits one job's run in which R of its alloc and release was edited."""

    def tampered(cluster, shape, edit, **more):
        result = run(cluster, job("A", 0, shape, 5), **more)
        lines, _ = recorded(result)
        honest = audited(result, cluster, tmp_path)
        assert honest, str(honest)
        for line in lines:
            placed(cluster, line, edit)
        return audited(result, cluster, tmp_path, lines)

    return tampered


def placed(cluster, line, edit):
    """Edit the units of a line."""
    execution = line["R"]["execution"]
    execution["R_lite"] = edit(execution["R_lite"])
    ranks = [rank for group in execution["R_lite"] for rank in ss.Idset.parse(group["rank"])]
    execution["nodelist"] = [cluster.index.hosts[rank] for rank in sorted(ranks)]


def lite(**cores):
    """R_lite of cores by rank: r0="0-1"."""
    return lambda _: [{"rank": name[1:], "children": {"core": ids}} for name, ids in cores.items()]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Two racks of two nodes of two sockets of four cores."""
    path = tmp_path_factory.mktemp("tree") / "tree.yaml"
    path.write_text(
        "name: tree\ngroups: [{name: n, count: 4, sockets: 2, cores: 8}]\nlevels: [{type: rack, count: 2}]\n"
    )
    return ss.load_cluster(path)


@pytest.mark.quick(4)
@pytest.mark.parametrize(
    ("shape", "edit", "said"),
    [
        ("slot=2/socket=1/core=2", lite(r0="0-1,4-5"), None),
        ("slot=2/socket=1/core=2", lite(r0="0-3"), "room for 1 slot"),
        ("slot=2/socket=1/core=2", lite(r0="0,4", r1="0,4"), "room for 0 slot"),
        ("slot=2/socket=1/core=2", lite(r0="0-1", r3="4-5"), None),
        ("socket=2/slot=1/core=4", lite(r0="0-7"), None),
        ("socket=2/slot=1/core=4", lite(r0="0-3", r1="0-2,4"), "room for 1 socket"),
        ("slot=1/socket=1", lite(r0="0-3"), None),
        ("slot=1/socket=1", lite(r0="0-2,4"), "room for 0 slot"),
        ("slot=1/socket=1", lite(r0="0-7"), "2 whole socket, requested 1"),
        ("slot=1/socket=1", lite(r0="0-3", r1="0"), "2 targets, requested 1"),
        ("rack=2/slot=1/node", lite(r0="0-7", r2="0-7"), None),
        ("rack=2/slot=1/node", lite(r0="0-7", r1="0-7"), "room for 1 rack"),
        ("rack=1/slot=2/node", lite(r0="0-7", r1="0-7"), None),
        ("rack=1/slot=2/node", lite(r0="0-7", r2="0-7"), "room for 0 rack"),
        ("slot=1/rack=1", lite(r2="0-7", r3="0-7"), None),
        ("slot=1/rack=1", lite(r0="0-7", r2="0-7", r3="0-6"), "core of rank 2 is in no rack"),
        ("slot=1/rack=1", lite(r0="0-7", r1="0-7", r2="0-7", r3="0-7"), "2 whole rack, requested 1"),
        ("slot=2/rack=1/node=1/core=3", lite(r1="0-2", r2="0-2"), None),
        ("slot=2/rack=1/node=1/core=3", lite(r0="0-2", r1="0-2"), "room for 1 slot"),
        ("slot=2/rack=1/node=1/core=3", lite(r1="0-2", r2="0-3"), "7 core, requested 6"),
        ("[rack=1/slot=1{a}/core=2;slot=1{b}/core=1]", lite(r0="0-1"), "2 core, requested 3"),
        ("core=3", lite(r0="0-2"), None),
        ("core=3", lite(r0="0-3"), "4 core, requested 3"),
    ],
)
def test_racks_and_sockets(tree, tampered, shape, edit, said):
    report = tampered(tree, shape, edit)
    found = [fault.text for fault in report.faults if fault.law == "A5"]
    assert (found == []) if said is None else found[0].startswith(said), found


def test_a_policy_of_whole_targets_may_give_more_and_whole_targets_alone(tree, tampered):
    assert tampered(tree, "slot=3/core", lite(r0="0-7"), match_policy="lonodex")
    found = tampered(tree, "slot=3/core", lite(r0="0-4"), match_policy="lonodex")
    assert "A5 job A: 5 core, requested 3" in str(found)


@pytest.fixture
def shared_by(tmp_path):
    """Audits two jobs of which the second is moved next to the first, in time and place."""

    def shared_by(cluster, first, second, edit):
        result = run(cluster, job("A", 0, first, 5), job("B", 9, second, 5))
        lines, _ = recorded(result)
        assert [line["id"] for line in lines] == ["A", "A", "B", "B"]
        for line in lines[2:]:
            line["time"] = 3
            placed(cluster, line, edit)
        return audited(result, cluster, tmp_path, [lines[at] for at in (0, 2, 3, 1)], [])

    return shared_by


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("first", "second", "edit", "clash"),
    [
        ("slot=1/socket=1/core=2", "slot=1/core=1", lite(r0="4"), False),
        ("slot=1/socket=1/core=2", "slot=1/core=1", lite(r0="3"), True),
        ("slot=1/rack=1/node=1/core=2", "slot=1/core=1", lite(r2="0"), False),
        ("slot=1/rack=1/node=1/core=2", "slot=1/core=1", lite(r1="0"), True),
        ("rack=1/slot=1/core=2", "slot=1/core=1", lite(r1="0"), False),
        ("slot=1/core=1", "slot=1/socket=1/core=1", lite(r0="1"), True),
    ],
)
def test_an_exclusive_rack_or_socket_is_held_with_all_that_is_in_it(
    tree, shared_by, first, second, edit, clash
):
    report = shared_by(tree, first, second, edit)
    assert ("A3" in report.counts) == clash, str(report)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "shape",
    [
        *("slot=1/socket=1/core=2", "slot=2/socket=1", "slot=1/rack=1/node=1/core=2", "slot=1/rack=1/core=2"),
        *("node=2/slot=1/socket=1/core=1", "slot=1/rack=1", "rack=1{x}/core=1", "rack=2/socket=1/core=3"),
        *(
            "[slot=1{a}/socket=1/core=2;slot=1{b}/core=1]",
            "slot=1/[socket=1/core=1;rack=1]",
            "node=1",
            "slot=2/core{-x}",
        ),
    ],
)
def test_honest_runs_on_a_tree_are_clean(tree, shape, tmp_path):
    result = run(tree, *(job(n, n, shape, 3 + n % 4) for n in range(8)))
    found = audited(result, tree, tmp_path)
    assert found, str(found)
    assert set(result.jobs["result"]) <= {"COMPLETED", "INFEASIBLE"}
