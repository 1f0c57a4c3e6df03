"""The pictures of ``docs/stories.md`` are what the simulator draws: each story is played, drawn and compared.

A line a job, a column a second: ``.`` it waits, ``#`` it runs, ``~`` its nodes clean up after it, ``x`` it
ends without having run.
"""

from __future__ import annotations

import json
import re
from tempfile import TemporaryDirectory

import pytest

from simsched.formats.rfc.dependency import Dependency
from simsched.simulation.audit.auditor import audit_run
from tests import REPOSITORY
from tests.simulation.simworld import job, machine, run

PAGE = REPOSITORY / "docs" / "stories.md"

HALVES = {"batch": {"requires": ["batch"]}, "debug": {"requires": ["debug"]}}
URGENT = {"batch": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}
OVERLAP = machine(4, properties={"batch": "0-2", "debug": "2-3"})


def needs(*texts):
    return {"dependencies": tuple(Dependency.parse(text) for text in texts)}


def preemptible(name, submit, shape, runtime, after):
    made = job(name, submit, shape, runtime, queue="batch")
    fields = {field: getattr(made, field) for field in made.__struct_fields__}
    return type(made)(**{**fields, "jobspec": made.jobspec.with_system(**{"preemptible-after": after})})


ORDER = (
    job("A", 0, "slot=2/core", 6),
    job("B", 1, "slot=3/core", 4),
    job("C", 1, "slot=4/core", 3),
    job("D", 2, "slot=1/core", 12),
)

#: Heading of the page → (cluster, jobs, rules) of each of its pictures.
STORIES = {
    "No job passes another": [
        (
            machine(4),
            [job("A", 0, "slot=3/core", 6), job("B", 1, "slot=4/core", 4), job("C", 2, "slot=1/core", 2)],
            {"policy": "fcfs"},
        ),
    ],
    "A backfill that ends before the shadow time": [
        (
            machine(4),
            [job("A", 0, "slot=3/core", 6), job("B", 1, "slot=4/core", 4), job("C", 2, "slot=1/core", 4)],
            {},
        ),
    ],
    "A backfill beside the reservation": [
        (
            machine(4),
            [job("A", 0, "slot=3/core", 6), job("B", 1, "slot=3/core", 4), job("C", 2, "slot=1/core", 9)],
            {},
        ),
    ],
    "A job that must not start": [
        (
            machine(4),
            [job("A", 0, "slot=3/core", 6), job("B", 1, "slot=4/core", 4), job("C", 2, "slot=1/core", 5)],
            {},
        ),
    ],
    "Conservative against EASY": [
        (machine(4), ORDER, {"policy": "easy"}),
        (machine(4), ORDER, {"policy": "conservative"}),
    ],
    "A failure, and the job queued again": [
        (
            machine(2),
            [job("A", 0, "slot=1/core", 5), job("B", 0, "slot=1/core", 6)],
            {"outages": [{"ranks": "0", "start": 3, "end": 8}]},
        ),
    ],
    "Announced maintenance": [
        (
            machine(2),
            [job("A", 0, "slot=1/core", 3), job("B", 1, "slot=1/core", 10), job("C", 2, "slot=1/core", 4)],
            {"outages": [{"ranks": "0-1", "start": 10, "end": 14, "kind": "maintenance"}]},
        ),
    ],
    "Preemption": [
        (
            machine(4),
            [
                preemptible("A", 0, "slot=1/core", 10, 3),
                preemptible("B", 2, "slot=1/core", 10, 5),
                preemptible("C", 1, "slot=1/core", 10, 3),
                job("D", 0, "slot=1/core", 10, queue="batch"),
                job("U", 4, "slot=2/core", 5, queue="urgent"),
            ],
            {"queues": URGENT},
        ),
    ],
    "A chain of dependencies that fails": [
        (
            machine(4),
            [
                job("A", 0, "slot=1/core", 9, 4),
                job("B", 0, "slot=1/core", 2, **needs("afterok:A")),
                job("C", 0, "slot=1/core", 2, **needs("afterok:B")),
                job("D", 0, "slot=1/core", 2, **needs("afternotok:A")),
                job("E", 0, "slot=1/core", 2, **needs("afterany:B")),
            ],
            {},
        ),
    ],
    "Two queues on overlapping nodes": [
        (
            OVERLAP,
            [
                job("A", 0, "slot=2/core", 9, queue="batch"),
                job("B", 1, "slot=3/core", 5, queue="batch"),
                job("C", 2, "slot=1/core", 20, queue="debug"),
                job("D", 3, "slot=1/core", 20, queue="debug"),
            ],
            {"queues": HALVES},
        ),
    ],
    "Partial release": [
        (
            machine(3),
            [job("A", 0, "slot=3/core", 4), job("B", 1, "slot=1/core", 4), job("C", 2, "slot=2/core", 2)],
            {"epilog": (1, 5), "seed": 1},
        ),
        (
            machine(3),
            [job("A", 0, "slot=3/core", 4), job("B", 1, "slot=1/core", 4), job("C", 2, "slot=2/core", 2)],
            {"epilog": (5, 5)},
        ),
    ],
}


def played(cluster, jobs, rules):
    result = run(cluster, *jobs, eventlog=True, **rules)
    with TemporaryDirectory() as folder:
        found = audit_run(result.save(f"{folder}/run"), cluster, result.workload)
    assert found, str(found)
    return result


def drawn(result):
    """The run as a picture: a line a job."""
    lines = [json.loads(line) for line in result.log.text().splitlines()]
    events = [json.loads(line) for line in result.events.text().splitlines()]
    rows = zip(*(result.jobs[name] for name in ("id", "submit", "end", "result")), strict=True)
    return "\n".join(row(*facts, lines, events) for facts in rows)


def row(name, submit, end, result, lines, events):
    mine = [(line["event"], line["time"]) for line in lines if line["id"] == name]
    over = max((int(e["timestamp"]) for e in events if e["id"] == name), default=0)
    cells = []
    for second in range(over + (result == "FAILED")):
        past = [event for event, time in mine if time <= second]
        last = [time for event, time in mine if event == "release" and time > second]
        if second < submit:
            cells.append(" ")
        elif end == end and second >= end:
            cells.append("~" if last else " ")
        elif result == "FAILED" and second == over:
            cells.append("x")
        else:
            cells.append("#" if past and past[-1] == "alloc" else ".")
    return f"{name} {''.join(cells)}".rstrip()


def pictures():
    """Heading → the pictures beneath it."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    blocks = (re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL) for text in parts[1::2])
    return {
        name: [block.rstrip("\n") for block in found] for name, found in zip(parts[::2], blocks, strict=True)
    }


def test_the_page_has_every_story_and_no_other():
    assert list(pictures()) == list(STORIES)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", STORIES)
def test_a_picture_is_what_happens(name):
    made = [drawn(played(*story)) for story in STORIES[name]]
    assert pictures()[name] == made, "\n\n".join(made)
