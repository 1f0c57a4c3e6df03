"""A queue picture: a live cluster's running and waiting jobs, and when those that wait would start."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.graph.cluster import load_cluster
from simsched.simulation.forecast.live_cluster import forecast_live, live_at
from simsched.simulation.forecast.start_times import NO_END, forecast_at
from simsched.workload.mapping import ReadOptions
from simsched.workload.queue_snapshot import Details, read_details, read_flux_queue, read_queue
from tests.simulation.simworld import job, machine, run, workload

INF = float("inf")
ONE = {"core": "0"}


def granted(ranks, children, hosts=None):
    """An R document of equal ranks; hosts are n0, n1 … as `machine` has them."""
    lite = [{"rank": ranks, "children": children}]
    return {"version": 1, "execution": {"R_lite": lite, "nodelist": [hosts or f"n[{ranks}]"]}}


def picture(time, running=(), waiting=(), details=None):
    document = {"kind": "simsched queue", "time": time, "running": list(running), "waiting": list(waiting)}
    return read_queue(json.dumps(document), "p.json", None, details)


def forecasts(cluster, *parts, at=None, **options):
    """{id: start} of a picture."""
    return {found.id: found.start for found in forecast_live(cluster, picture(*parts), at, **options)}


# --- the law: a picture says as much as the checkpoint that it was taken from ------------------------


def picture_of_checkpoint(path, jobs, *, asked):
    """Return the public part of a checkpoint as a picture; `asked`: running jobs tell their requests."""
    saved = json.loads(Path(path).read_text())
    more = {
        str(job.id): {
            "shape": job.jobspec.to_shape(),
            "urgency": job.urgency,
            **({"constraint": "a"} if job.jobspec.constraint else {}),
        }
        for job in jobs
    }
    running = [{**entry, **(more[entry["id"]] if asked else {})} for entry in saved["running"]]
    waiting = [{**entry, **more[entry["id"]]} for entry in saved["waiting"]]
    return picture(saved["time"], running, waiting)


PLAIN = [f"slot={n}/core" for n in (1, 2, 3, 5, 8)]
WHOLE = [f"slot={n}/node" for n in (1, 2, 3)]
MIXED = [
    *("slot=2/core=2", "slot=3/[core;gpu]", "slot=1/node", "node=2/slot=2/core", "slot=1/gpu"),
    *("node=1/slot=1/core", "slot=2/node/core=1"),
]


@st.composite
def stories(draw, *, exact=False):
    """(nodes, jobs, rules): with `exact` everybody takes the time that was asked for."""
    shapes = draw(st.sampled_from([PLAIN, WHOLE, MIXED, MIXED]))
    jobs = []
    for number in range(draw(st.integers(2, 25))):
        limits = [3, 5, 8, 20] if exact or number % 7 else [5, INF]
        asked, runs = draw(st.sampled_from(limits)), draw(st.integers(1, 8))
        more = {"urgency": draw(st.sampled_from([16, 16, 20]))}
        if shapes is MIXED:
            more["constraint"] = draw(st.sampled_from([None, None, "a"]))
        shape, submit = draw(st.sampled_from(shapes)), draw(st.integers(0, 12))
        jobs.append(job(f"j{number}", submit, shape, asked if exact else min(runs, asked), asked, **more))
    rules = {
        "queue_policy": draw(st.sampled_from(["fcfs", "easy", "conservative", "hybrid"])),
        "order": draw(st.sampled_from(["fifo", "priority", "sjf"])),
        "match_policy": draw(st.sampled_from(["first", "hinode", "bestfit"])),
    }
    if rules["queue_policy"] in ("conservative", "hybrid"):
        rules["queue_options"] = {"compress": "replan"}  # a picture knows nothing of promises
    return draw(st.integers(2, 4)), jobs, rules


def cut(folder, story, at, *, asked):
    """Return the machine, the workload, the checkpoint at a time, and the picture that is its public part."""
    nodes, jobs, rules = story
    cluster, path = machine(nodes, 3, 1, properties={"a": "1"}), folder.mktemp("live") / "state.json"
    more = {name: rule for name, rule in rules.items() if name != "queue_policy"}
    run(cluster, *jobs, policy=rules["queue_policy"], checkpoints={at: path}, **more)
    if any("node/core" in job.jobspec.to_shape() for job in jobs):
        asked = True  # these hold more than R names
    return cluster, workload(*jobs), path, picture_of_checkpoint(path, jobs, asked=asked)


@settings(max_examples=100, deadline=None)
@given(story=stories(), at=st.integers(0, 14), asked=st.booleans())
def test_a_picture_says_as_much_as_the_checkpoint_that_it_was_taken_from(tmp_path_factory, story, at, asked):
    cluster, jobs, path, drawn = cut(tmp_path_factory, story, at + 0.5, asked=asked)
    _, expected = forecast_at(cluster, jobs, None, resume=path, **story[2])
    assert live_at(cluster, drawn, None, **story[2]) == (at + 0.5, expected)


@settings(max_examples=60, deadline=None)
@given(story=stories(exact=True), later=st.integers(1, 40), asked=st.booleans())
def test_where_requests_are_exact_it_plays_on_as_the_run_does(tmp_path_factory, story, later, asked):
    """But for what starts at the very instant: it waits no more, and a picture tells of it all the same."""
    cluster, jobs, path, drawn = cut(tmp_path_factory, story, 12.5, asked=asked)
    at = 12.5 + later / 2
    _, expected = forecast_at(cluster, jobs, at, resume=path, **story[2])
    _, found = live_at(cluster, drawn, at, **story[2])
    assert [waits for waits in found if waits.place is not None] == expected
    assert all(waits.start == at for waits in found if waits.place is None)


# --- stories, worked by hand ------------------------------------------------------------------------


def running(name, ranks, start, end, children=ONE, **more):
    return {"id": name, "start": start, "expected_end": end, "R": granted(ranks, children), **more}


def waiting(name, shape, duration, **more):
    return {"id": name, "submit": 0, "shape": shape, "duration": duration, **more}


#: Four nodes of one core: A has two until 10, B one until 4.
A_AND_B = (running("A", "0-1", 0, 10), running("B", "2", 0, 4))


def test_those_in_front_go_first_and_those_behind_pass_beside_them():
    """C needs all nodes, at 10; D is done by then and starts at once, F once B has ended; E waits for C."""
    queue = [waiting("C", "slot=4/core", 5), waiting("D", "slot=1/core", 9)]
    queue += [waiting("E", "slot=1/core", 20), waiting("F", "slot=1/core", 6)]
    found = forecast_live(machine(4), picture(1, A_AND_B, queue))
    assert [(x.id, x.place, x.start) for x in found] == [
        ("D", None, 1),
        ("C", 1, 10),
        ("E", 2, 15),
        ("F", 3, 4),
    ]
    assert forecasts(machine(4), 1, A_AND_B, queue, queue_policy="fcfs") == {"C": 10, "D": 1, "E": 15, "F": 4}
    assert forecasts(machine(4), 1, A_AND_B, queue, order="sjf") == {"F": 1, "C": 10, "D": 15, "E": 15}
    assert forecasts(machine(4), 1, A_AND_B, queue[1:] + queue[:1], queue_policy="fcfs") == {
        "D": 1, "E": 4, "F": 10, "C": 24}  # fmt: skip


def test_played_on_what_has_started_is_left_out():
    queue = [waiting("C", "slot=4/core", 5), waiting("D", "slot=1/core", 9), waiting("E", "slot=1/core", 20)]
    assert forecasts(machine(4), 1, A_AND_B, queue, at=9) == {"C": 10, "E": 15}
    assert forecasts(machine(4), 1, A_AND_B, queue, at=10) == {"C": 10, "E": 15}
    assert forecasts(machine(4), 1, A_AND_B, queue, at=12) == {"E": 15}
    assert forecasts(machine(4), 1, A_AND_B, queue, at=99) == {}


def test_units_are_held_by_their_ids():
    """Of four cores 0 and 2 are held; two are free, and a slot of three waits for the first that goes."""
    held = [running("A", "0", 0, 9, {"core": "0,2"}), running("B", "1", 0, 5, {"core": "0-3", "gpu": "0"})]
    queue = [waiting("C", "slot=1/core=3", 5), waiting("D", "slot=1/[core=2;gpu]", 5)]
    assert forecasts(machine(2, 4, 1), 1, held, queue) == {"D": 1, "C": 5}


def test_what_a_request_holds_beyond_what_r_names():
    """A counted one core of a node that it has for itself; without its request R says that three are free."""
    queue = [waiting("B", "slot=1/core", 5)]
    assert forecasts(machine(1, 4), 1, [running("A", "0", 0, 9)], queue) == {"B": 1}
    alone = [running("A", "0", 0, 9, shape="slot=1/node/core=1")]
    assert forecasts(machine(1, 4), 1, alone, queue) == {"B": 9}


def test_an_end_that_has_passed_counts_as_now_and_none_as_never():
    queue = [waiting("C", "slot=1/core", 5)]
    for policy in ("fcfs", "easy", "conservative"):
        late = [running("A", "0", 0, 3)]
        assert forecasts(machine(1), 7, late, queue, queue_policy=policy) == {"C": 7}
        assert forecasts(machine(1), 7, late, queue, queue_policy=policy, at=8) == {}  # it started at 7
        (found,) = forecast_live(
            machine(1), picture(7, [running("A", "0", 0, None)], queue), queue_policy=policy
        )
        assert (found.start, found.reason) == (INF, NO_END)
    for end in ({"duration": 9}, {"R": {**granted("0", ONE)}, "duration": "9s"}):
        entry = {"id": "A", "start": 1, "R": granted("0", ONE), **end}
        assert forecasts(machine(1), 7, [entry], queue) == {"C": 10}
    entry = {"id": "A", "start": 1, "R": granted("0", ONE)}
    entry["R"]["execution"]["expiration"] = 11
    assert forecasts(machine(1), 7, [entry], queue) == {"C": 11}


def test_who_does_not_wait_for_resources_comes_last_and_says_why():
    queue = [
        waiting("H", "slot=1/core", 5, urgency=0),
        waiting("I", "slot=1/core", 5, hold=True),
        waiting("J", "slot=5/core", 5),
        waiting("K", "slot=1/core", 5, depends="afterok:A"),
        waiting("L", "slot=1/core", 5, depends="after:B"),
        waiting("M", "slot=1/core", 5, depends="afterany:J"),
    ]
    found = forecast_live(machine(4), picture(1, A_AND_B, queue))
    assert [(x.id, x.start, x.place) for x in found] == [("L", 1, None)] + [(x, INF, None) for x in "HIJKM"]
    why = {x.id: x.reason for x in found}
    assert "urgency is 0" in why["H"]
    assert "5 needed, 4 available" in why["J"]
    assert (why["K"], why["M"]) == ("waits for afterok:A", "waits for afterany:J")
    later = {x.id: x.start for x in forecast_live(machine(4), picture(1, A_AND_B, queue), 10)}
    assert later["K"] == 10  # A has ended


def test_nodes_that_are_down_hold_what_runs_there_and_give_it_to_nobody():
    """Node 2 is drained from the beginning: B runs on there, and when it ends nobody gets its node."""
    drained = [{"ranks": "2-3", "start": 0, "end": "100s", "kind": "drain"}]
    queue = [waiting("C", "slot=1/core", 5), waiting("D", "slot=3/core", 5)]
    assert forecasts(machine(4), 1, A_AND_B, queue, outages=drained) == {"C": 10, "D": INF}
    assert forecasts(machine(4), 1, A_AND_B, queue, outages=drained, at=100) == {"D": 100}
    closed = [{"ranks": "3", "start": 5, "end": 20, "kind": "maintenance"}]
    assert forecasts(machine(4), 1, A_AND_B, queue, outages=closed) == {"C": 4, "D": 10}


def test_a_cluster_with_nodes_down(tmp_path):
    """The same, down in the cluster itself: what would need them can never run there."""
    document = machine(4).to_dict("jgf")
    for node in document["graph"]["nodes"]:
        if node["metadata"].get("rank") in (2, 3) and node["metadata"]["type"] == "node":
            node["metadata"]["status"] = 1
    (tmp_path / "c.json").write_text(json.dumps(document))
    cluster = load_cluster(tmp_path / "c.json")
    assert cluster.index.up.tolist() == [True, True, False, False]
    queue = [waiting("C", "slot=2/core", 5), waiting("D", "slot=3/core", 5)]
    found = forecast_live(cluster, picture(1, A_AND_B, queue))
    assert {x.id: x.start for x in found} == {"C": 10, "D": INF}


def test_queues_priorities_and_hours():
    rules = {
        "queues": {
            "batch": {"requires": ["b"], "closed": [[5, 30]]},
            "debug": {"requires": ["b"], "priority": 10, "policy": {"limits": {"duration": 60}}},
        }
    }
    cluster = machine(2, properties={"b": "0"})
    queue = [
        waiting("C", "slot=1/core", 7, queue="batch"),
        waiting("D", "slot=1/core", 5, queue="debug"),
        waiting("E", "slot=1/core", 99, queue="debug"),
        waiting("F", "slot=1/core", 5, queue="no"),
    ]
    held = [running("A", "0", 0, 4)]
    found = {x.id: (x.start, x.reason) for x in forecast_live(cluster, picture(1, held, queue), **rules)}
    assert (found["D"][0], found["C"][0], found["E"][0]) == (4, 9, INF)
    assert "queue debug allows" in found["E"][1]
    assert "there is no queue 'no'" in found["F"][1]
    found = {x.id: (x.start, x.reason) for x in forecast_live(cluster, picture(6, [], queue), **rules)}
    assert found["C"] == (INF, "queue batch is closed")
    ranked = [waiting("C", "slot=1/core", 5), waiting("D", "slot=1/core", 5, submit=1, priority=4 * 10**9)]
    assert forecasts(cluster, 1, [running("A", "0-1", 0, 4)], ranked, order="priority") == {"D": 4, "C": 4}
    assert forecasts(machine(1), 1, [running("A", "0", 0, 4)], ranked, order="priority") == {"D": 4, "C": 9}
    assert forecasts(machine(1), 1, [running("A", "0", 0, 4)], ranked) == {"C": 4, "D": 9}


# --- what is no picture, or none of this cluster ---------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "queue", "said"),
    [
        ([running("A", "7", 0, 9)], [], "p.json: running[0] (job A): the cluster has no rank 7"),
        ([running("A", "0", 0, 9, {"gpu": "0"})], [], "running[0] (job A): rank 0 (n0) has no gpu"),
        ([running("A", "0", 0, 9), running("B", "0-1", 0, 9)], [],
         "running[1] (job B): core 0 of n0 (rank 0) is already claimed by job A"),
        ([running("A", "0", 5, 4)], [], "running[0]: ends at 4, before its start at 5"),
        ([running("A", "0", 8, 9)], [], "running[0]: starts at 8, after the snapshot's 7"),
        ([{"id": "A", "start": 1}], [], "the resources of the running job are missing (expected R"),
        ([{"id": "A", "R": granted("0", ONE)}], [], "running[0]: the key 'start' is missing (expected"),
        ([{"id": "A", "start": 1, "R": {"version": 2}}], [], "p.json: running[0].R: version: R of version 2"),
        ([{"start": 1}], [], "running[0]: the key 'id' is missing (expected a whole number or a text)"),
        ([running("A", "0", 0, 9, ends=4)], [], "unknown key 'ends'"),
        ([running("A", "0", "soon", 9)], [], "running[0].start"),
        ([], [waiting("C", "slot=1/core", 5, submit=9)], "submitted at 9, after the snapshot's 7"),
        ([], [{"id": "C", "submit": 0}], "waiting[0]: the request is missing"),
        ([], [waiting("C", "slot=1/cor e", 5)], "waiting[0].shape"),
        ([], [waiting("C", "slot=1/core", -5)], "waiting[0].duration"),
        ([], [waiting("C", "slot=1/core", 5, runtime=3)], "unknown key 'runtime'"),
        ([], [waiting("C", "slot=1/core", 5, depends="afterok:X")], "depends on 'X'"),
        ([running("A", "0", 0, 9)], [waiting("A", "slot=1/core", 5)], "job id 'A' occurs twice"),
        ([], [waiting("C", "slot=1/core", 5, urgency=32)], "waiting[0].urgency: 32 is out of range"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(held, queue, said):
    with pytest.raises(SimschedError) as caught:
        forecast_live(machine(4), picture(7, held, queue))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kind: simsched queu\ntime: 3\n",
            "the document has the kind 'simsched queu' (expected kind: simsched queue)",
        ),
        ('{"kind": "simsched checkpoint", "time": 3}', "a checkpoint is not a queue snapshot"),
        (
            "kind: simsched queue\nrunning: []\n",
            "p.yaml: the key 'time' is missing (expected the time of the snapshot",
        ),
        ("kind: simsched queue\ntime: 3\nruning: []\n", "unknown key 'runing'"),
        ("kind: simsched queue\ntime: 3\nwaiting: 7\n", "waiting: 7 is not a list of jobs"),
        ('{"kind": "simsched queue", "time": NaN}', "NaN"),
        ('{"kind": "simsched queue", "time": 1, "time": 2}', "time"),
        ("kind: [simsched", "line"),
    ],
)
def test_documents_that_are_none(tmp_path, text, said):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(SimschedError, match=re.escape(said) if said != "line" else "p.yaml"):
        forecast_live(machine(1), path)


def test_times_and_rules_that_do_not_fit():
    drawn = picture(7, [], [waiting("C", "slot=1/core", 5)])
    with pytest.raises(SimschedError, match="a forecast at 6 s"):
        forecast_live(machine(1), drawn, 6)
    with pytest.raises(SimschedError, match="random failures cannot be forecast"):
        forecast_live(machine(1), drawn, failures="mtbf=1d,mttr=1h")
    with pytest.raises(SimschedError, match="unknown queue policy"):
        forecast_live(machine(1), drawn, queue_policy="esay")


def test_details_tell_what_the_picture_does_not(tmp_path):
    path = tmp_path / "more.jsonl"
    spec = Jobspec.from_shape("slot=2/core", duration=3).to_dict()
    lines = [
        {"id": "A", "R": granted("0-1", ONE)},
        {"id": "C", "jobspec": spec},
        {"id": "Z", "R": granted("9", ONE)},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    held, queue = (
        [{"id": "A", "start": 1, "expected_end": 9}],
        [{"id": "C"}, {"id": "D", "shape": "slot=2/core"}],
    )
    drawn = picture(7, held, queue, read_details(path))
    assert {x.id: x.start for x in forecast_live(machine(2), drawn)} == {"C": 9, "D": 12}
    for text, said in (
        ('{"id": 1, "r": 2}', "more.jsonl:1: unknown key 'r'"),
        ("[1]", "more.jsonl[0]: 1 is not a table (expected id, R, jobspec)"),
    ):
        path.write_text(text)
        with pytest.raises(SimschedError, match=re.escape(said)):
            read_details(path)


# --- Flux without R: nodes and numbers of cores -----------------------------------------------------------


def flux(*records):
    """A picture at 100 of (id, state, fields); what runs started at 0."""
    jobs = []
    for number, (state, fields) in enumerate(records, 1):
        job = {"id": number, "jobid": f"j{number}", "state": state, "t_submit": 1.0 + number, "duration": 0.0}
        if state in ("RUN", "CLEANUP"):
            job |= {"t_submit": 0.5, "t_run": 1.0, "runtime": 99.0}
        jobs.append({**job, **fields})
    found = read_flux_queue(json.dumps({"jobs": jobs}), "f.json", ReadOptions(), Details())
    assert found is not None
    return found


def at_once(cluster, drawn, **options):
    """{id: start} as far as it is known."""
    return {x.id: x.start for x in forecast_live(cluster, drawn, **options) if x.start < INF}


def test_as_many_cores_as_the_nodes_have_are_the_nodes_whole_and_fewer_are_cores():
    """j1 has its nodes whole, gpus included; j2 three of four cores of n2, its gpus are not told."""
    busy = [
        ("RUN", {"ranks": "[0-1]", "nodelist": "n[0-1]", "ncores": 8, "nnodes": 2, "expiration": 900.0}),
        ("RUN", {"ranks": "2", "nodelist": "n2", "ncores": 3, "nnodes": 1, "expiration": 500.0}),
    ]
    asks = [
        ("SCHED", {"ncores": 1, "duration": 50.0}),
        ("SCHED", {"ncores": 1, "duration": 50.0}),
        ("SCHED", {"ncores": 2, "nnodes": 1, "duration": 50.0}),
        ("SCHED", {"nnodes": 1, "duration": 50.0}),
        ("SCHED", {"nnodes": 3, "duration": 50.0}),
    ]
    found = at_once(machine(3, 4, 1), flux(*busy, *asks), queue_policy="conservative")
    assert found == {"j3": 100, "j4": 150, "j5": 500, "j6": 550, "j7": 900}


def test_cores_of_several_nodes_are_spread_after_those_that_are_known():
    """j1 has 4 of the cores of n0 and n1, j2 all but one of n0's: three of j1's can only be on n1."""
    busy = [
        ("RUN", {"ranks": "0-1", "ncores": 4, "expiration": 900.0}),
        ("RUN", {"nodelist": "n0", "ncores": 3, "expiration": 500.0}),
    ]
    asks = [
        ("SCHED", {"ncores": 1, "duration": 50.0}),
        ("SCHED", {"ncores": 4, "nnodes": 1, "duration": 50.0}),
    ]
    assert at_once(machine(2, 4), flux(*busy, *asks)) == {"j3": 100, "j4": 900}
    too_many = ("RUN", {"ranks": "0-1", "ncores": 3, "expiration": 900.0})
    with pytest.raises(SimschedError, match=r"\(job j3\): 3 cores do not fit on n\[0-1\] beside"):
        forecast_live(machine(2, 4), flux(*busy, too_many))
    with pytest.raises(SimschedError, match="holds 9 cores on nodes that have 8"):
        forecast_live(machine(2, 4), flux(("RUN", {"ranks": "0-1", "ncores": 9})))
    with pytest.raises(SimschedError, match=r"jobs\[0\] \(job j1\): the cluster has no rank 4"):
        forecast_live(machine(2, 4), flux(("RUN", {"ranks": "4", "ncores": 1})))


def test_a_job_that_cleans_up_holds_what_is_left_and_its_end_counts_as_now():
    """n0 was given back and is j2's; n1 still cleans up, and is counted on from now on."""
    busy = [
        ("CLEANUP", {"ranks": "0-1", "ncores": 8, "expiration": 900.0, "t_cleanup": 90.0}),
        ("RUN", {"ranks": "0", "ncores": 4, "expiration": 500.0}),
    ]
    asks = [("SCHED", {"nnodes": 1, "duration": 50.0}), ("SCHED", {"nnodes": 2, "duration": 50.0})]
    found = forecast_live(machine(2, 4), flux(*busy, *asks))
    assert [(x.id, x.place, x.start) for x in found] == [("j3", 1, 100), ("j4", 2, 500)]


def test_flux_goes_by_its_priorities_unless_told_otherwise():
    busy = [("RUN", {"ranks": "0", "ncores": 1, "expiration": 200.0})]
    asks = [("SCHED", {"ncores": 1, "duration": 50.0, "priority": p}) for p in (16, 99)]
    assert at_once(machine(1), flux(*busy, *asks)) == {"j2": 250, "j3": 200}
    assert at_once(machine(1), flux(*busy, *asks), order="fifo") == {"j2": 200, "j3": 250}


def test_what_runs_although_it_can_never_run_here_gives_back_what_it_holds():
    """A asked for five slots of two cores and holds four cores: counts of slots cannot tell the end."""
    held = [running("A", "0-3", 0, 10, shape="slot=5/core=2")]
    queue = [waiting("B", "slot=1/core=2", 5), waiting("C", "slot=4/core=2", 5)]
    assert forecasts(machine(4, 2), 1, held, queue) == {"B": 10, "C": 15}


def test_without_a_limit_of_its_own_a_job_takes_that_of_its_queue_and_ends_well():
    limits = {"policy": {"jobspec": {"defaults": {"system": {"duration": 5}}}}}
    rules = {"queues": {"batch": {"requires": [], **limits}}}
    queue = [
        {"id": "C", "submit": 0, "shape": "slot=1/core", "queue": "batch"},
        waiting("D", "slot=1/core", 5, queue="batch", depends="afterok:C"),
        waiting("E", "slot=1/core", 9, queue="batch"),
    ]
    for more in ({}, {"overrun": "allow"}):
        assert forecasts(machine(1), 1, [], queue, **rules, **more) == {"C": 1, "E": 6, "D": INF}
        assert forecasts(machine(1), 1, [], queue, at=7, **rules, **more) == {"E": 11}  # behind D
