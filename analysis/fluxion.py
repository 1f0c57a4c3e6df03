"""Fluxion's own tests, played by simsched: ``python -m analysis.fluxion FLUX_SCHED``.

`FLUX_SCHED` is a checkout of github.com/flux-framework/flux-sched.  Its tests ``t/t3*.t`` run
``resource-query`` with a machine, a match policy and a file of commands, and compare the output with a stored
one.  Here the commands go to a `Matcher`, and its answers are compared with that output: whether each request
gets resources, and under a policy that has an order of its own, the cores and gpus of each node.

A file that only allocates or reserves is also run as jobs that are all submitted at second 0, under
conservative backfilling: each has to start when Fluxion scheduled it.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import simsched as ss

if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOCATE, RESERVE, SATISFY = "allocate", "allocate_orelse_reserve", "satisfiability"
MATCHES = (ALLOCATE, RESERVE, SATISFY, "allocate_with_satisfiability")
SILENT = ("quit", "info", "find", "stat")
ALL = "0-1"
"""The ranks of the machine whose root is marked down."""


class Test(NamedTuple):
    """One run of resource-query: its script, machine, match policy, commands and stored output."""

    script: str
    machine: Path
    policy: str
    commands: list[list[str]]
    output: list[str]


class Answer(NamedTuple):
    """What resource-query printed for one request: allocated, reserved or nothing; the start; the units."""

    kind: str
    start: str
    units: frozenset[tuple[str, str, int]]


def tests(folder: Path) -> list[Test]:
    """Return the tests whose files are all there, each once."""
    found: dict[object, Test] = {}
    for script in sorted(folder.glob("t3*.t")):
        names = {"SHARNESS_TEST_SRCDIR": str(folder)}
        query = None
        for line in script.read_text().splitlines():
            text = _expand(line.strip(), names)
            if assigned := re.fullmatch(r'(\w+)="?([^"]*?)"?', text):
                names[assigned[1]] = assigned[2]
            elif edited := re.search(r"sed .* (\S+) > (\S+)", text):
                names[edited[2]] = edited[1]
            elif started := re.search(r"resource-query (.*) < (\S+)", text):
                query = started
            elif query and (compared := re.search(r"test_cmp \S+ ([^\s']+)", text)):
                files = Path(names.get(query[2], "-")), Path(compared[1])
                options = dict(re.findall(r"-(\w) (\S+)", query[1]))
                # The traverser `flexible` takes slots for alternatives.
                if options.get("T") != "flexible" and all(file.is_file() for file in files):
                    lines = _expand(files[0].read_text().replace("@TEST_SRCDIR@", str(folder)), names)
                    rows = [row.split() for row in lines.splitlines() if row.strip() and row[0] != "#"]
                    policy = options.get("P", "first")
                    test = Test(
                        script.stem, Path(options["L"]), policy, rows, files[1].read_text().splitlines()
                    )
                    found.setdefault((*files, options["L"], policy), test)
                query = None
    return list(found.values())


def _expand(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda name: names.get(name[1], name[0]), text)


def answers(output: list[str]) -> list[Answer]:
    """Return what the stored output says of each request."""
    found: list[Answer] = []
    said: dict[str, str] = {}
    units: set[tuple[str, str, int]] = set()
    waiting: list[tuple[str, int]] = []  # cores and gpus, which come before their node
    for line in output:
        if vertex := re.match(r"\s*-+([a-z_]+?)(\d+)\[", line):
            name, number = vertex[1], int(vertex[2])
            if name == "node":
                units |= {(f"node{number}", *unit) for unit in waiting}
                waiting.clear()
            elif name in ("core", "gpu"):
                waiting.append((name, number))
        elif fact := re.match(r"INFO: (RESOURCES|SCHEDULED AT)=(\w+)", line):
            said[fact[1]] = fact[2]
        elif re.match(r"(INFO|ERROR): .*(No matching|nsatisfiable)", line):
            said["RESOURCES"] = "NONE"
        elif line.startswith("INFO: Satisfiable"):
            said["RESOURCES"] = "ALLOCATED"
        elif line.startswith("INFO: ====") and said:
            found.append(Answer(said["RESOURCES"], said.get("SCHEDULED AT", ""), frozenset(units)))
            said, units = {}, set()
    return found


def play(test: Test) -> list[Answer] | None:
    """Return the answers of a Matcher to the commands; None if there is one that has no counterpart."""
    matcher = ss.Matcher(ss.load_cluster(test.machine), policy=test.policy)
    found = []
    for command, *rest in test.commands:
        if command in SILENT:
            continue
        if command == "match" and rest[0] in MATCHES:
            found.append(_answer(matcher, rest[0], request(rest[1])))
        elif command == "cancel":
            matcher.release(int(rest[0]))
        elif command == "set-status" and rest[1] in ("up", "down"):
            host = rest[0].rpartition("/")[2]
            matcher.set_status(rest[1], **({"hosts": host} if host.startswith("node") else {"ranks": ALL}))
        else:
            return None
    return found


def _answer(matcher: ss.Matcher, how: str, jobspec: ss.Jobspec) -> Answer:
    if how == SATISFY:
        return Answer("ALLOCATED" if matcher.satisfiable(jobspec) else "NONE", "", frozenset())
    outcome = matcher.match(jobspec, starttime=0)
    if isinstance(outcome, ss.Matched):
        return Answer("ALLOCATED", "Now", _units(outcome.R))
    later = matcher.match_or_reserve(jobspec, now=0) if how == RESERVE else None
    reserved = isinstance(later, ss.Busy) and later.start is not None
    return Answer("RESERVED" if reserved else "NONE", "", frozenset())


def _units(granted: ss.ResourceSet) -> frozenset[tuple[str, str, int]]:
    execution = granted.to_dict()["execution"]
    hosts = [host for text in execution["nodelist"] for host in ss.Hostlist.parse(text)]
    ranks = sorted(
        (rank, group["children"])
        for group in execution["R_lite"]
        for rank in ss.Idset.parse(str(group["rank"]))
    )
    return frozenset(
        (host, type_, unit)
        for host, (_, children) in zip(hosts, ranks, strict=True)
        for type_ in ("core", "gpu")
        for unit in ss.Idset.parse(children.get(type_, ""))
    )


def request(file: str) -> ss.Jobspec:
    """Read a jobspec; its task may name a slot that does not exist, as in many of these files."""
    return ss.load_jobspec(file, lenient=lambda *_: None)


def starts(test: Test) -> list[str] | None:
    """Return the start of each job under conservative backfilling; None for other commands."""
    rows = [row for row in test.commands if row[0] not in SILENT]
    if any(row[:2] != ["match", RESERVE] for row in rows):
        return None
    specs = [request(row[2]) for row in rows]
    jobs = [
        ss.Job(id=at, submit=0, runtime=spec.duration, jobspec=spec, duration=spec.duration)
        for at, spec in enumerate(specs)
    ]
    run: Any = ss.simulate(
        ss.load_cluster(test.machine),
        ss.Workload(jobs),
        queue_policy="conservative",
        match_policy=test.policy,
    )
    return [str(int(start)) if start else "Now" for start in run.jobs["start"]]


def in_short(values: Iterable[str]) -> str:
    """Return values with equal neighbours once."""
    return ", ".join(f"{len(list(group))} {value}" for value, group in groupby(values))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="FLUX_SCHED", type=Path)
    count = Counter[str]()
    for test in tests(parser.parse_args().folder / "t"):
        name = f"{test.script} {Path(test.commands[0][-1]).parent.name} -P {test.policy}"
        try:
            played, scheduled = play(test), starts(test)
        except ss.SimschedError as error:
            count["refused"] += 1
            print(f"{name}: refused: {error}")
            continue
        if played is None:
            count["other commands"] += 1
            continue
        known = answers(test.output)
        kinds = [one.kind for one in known]
        count["tests"] += 1
        count["requests"] += len(known)
        if [one.kind for one in played] != kinds:
            print(f"{name}: {in_short(one.kind for one in played)}; Fluxion has {in_short(kinds)}")
            count["other answers"] += 1
        elif test.policy != "first":  # Fluxion's order of `first` is not stated
            pairs = [(o.units, k.units) for o, k in zip(played, known, strict=True) if o.units]
            count["placements"] += len(pairs)
            count["other placements"] += (other := sum(ours != theirs for ours, theirs in pairs))
            if other:
                print(f"{name}: {other} of {len(pairs)} placements are on other cores or gpus")
        if scheduled is not None:
            times = [one.start for one in known]
            count["starts"] += len(times)
            count["other starts"] += (other := sum(a != b for a, b in zip(scheduled, times, strict=True)))
            if other:
                print(f"{name}: {other} of {len(times)} starts: {in_short(scheduled)}; {in_short(times)}")
    print(", ".join(f"{number} {what}" for what, number in count.items()))


if __name__ == "__main__":
    main()
