"""A queue picture: a live cluster's running and waiting jobs, and when those that wait would start."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from simworld import job, machine, run, workload

from simsched.simulate.forecast import forecast_at
from simsched.simulate.live import forecast_live, live_at
from simsched.workload.queue_document import read_queue

INF = float("inf")


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


# --- the law: a picture says as much as the snapshot that it was taken from ------------------------


def picture_of_snapshot(path, jobs, *, asked):
    """Return the public part of a snapshot as a picture; `asked`: running jobs tell their requests."""
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
    return draw(st.integers(2, 4)), jobs, rules


def cut(folder, story, at, *, asked):
    """Return the machine, the workload, the snapshot at a time, and the picture that is its public part."""
    nodes, jobs, rules = story
    cluster, path = machine(nodes, 3, 1, properties={"a": "1"}), folder.mktemp("live") / "state.json"
    more = {name: rule for name, rule in rules.items() if name != "queue_policy"}
    run(cluster, *jobs, policy=rules["queue_policy"], snapshots={at: path}, **more)
    if any("node/core" in job.jobspec.to_shape() for job in jobs):
        asked = True  # these hold more than R names
    return cluster, workload(*jobs), path, picture_of_snapshot(path, jobs, asked=asked)


@settings(max_examples=150, deadline=None)
@given(story=stories(), at=st.integers(0, 14), asked=st.booleans())
def test_a_picture_says_as_much_as_the_snapshot_that_it_was_taken_from(tmp_path_factory, story, at, asked):
    cluster, jobs, path, drawn = cut(tmp_path_factory, story, at + 0.5, asked=asked)
    _, expected = forecast_at(cluster, jobs, None, resume=path, **story[2])
    assert live_at(cluster, drawn, None, **story[2]) == (at + 0.5, expected)


@settings(max_examples=100, deadline=None)
@given(story=stories(exact=True), later=st.integers(1, 40), asked=st.booleans())
def test_where_requests_are_exact_it_plays_on_as_the_run_does(tmp_path_factory, story, later, asked):
    """But for what starts at the very instant: it waits no more, and a picture tells of it all the same."""
    cluster, jobs, path, drawn = cut(tmp_path_factory, story, 12.5, asked=asked)
    at = 12.5 + later / 2
    _, expected = forecast_at(cluster, jobs, at, resume=path, **story[2])
    _, found = live_at(cluster, drawn, at, **story[2])
    assert [waits for waits in found if waits.place is not None] == expected
    assert all(waits.start == at for waits in found if waits.place is None)
