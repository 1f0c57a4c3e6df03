"""How near are simulations to four logs?  Recorded runs, policies against the log, calibration."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

import simsched as ss
from analysis.studies.common import QUICK, Page, kept_file, scratch, simsched
from simsched import human
from simsched.report.metrics.agreement import agreement
from simsched.report.run_views import load_run

TRACES = os.environ.get("SIMSCHED_TRACES")
WORKERS = int(os.environ.get("SIMSCHED_STUDIES_WORKERS", "0"))
POLICIES = ("recorded", "fcfs", "easy", "conservative")
MOST_SETTINGS = 5
#: settings of each knob that `calibrate` tries beside others, to save time
BESIDE = 3


@dataclass(frozen=True)
class Log:
    """A log of the Parallel Workloads Archive, and the part of it that is calibrated."""

    name: str
    file: str
    part: str  # a transform; empty for the whole log
    told: str
    #: the knobs that are tried; empty for all
    knobs: tuple[str, ...] = ()
    #: the part that the policies play; empty for the whole log
    played: str = ""


#: those that are quick also for a large machine
FEW = ("queue-priority", "user-limits", "kill-grace", "capacity")
#: the second and third quarter of a year: one week of warm-up, 16 that choose and 9 that test
HALF_YEAR = "slice(91d, 274d)"
CURIE = "slice(84d, 126d)"
LOGS = (
    Log("KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", HALF_YEAR, "weeks 14 to 39"),
    Log("SDSC-SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", HALF_YEAR, "weeks 14 to 39"),
    Log("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", HALF_YEAR, "weeks 14 to 39"),
    Log("CEA Curie", "CEA-Curie-2011-2.1-cln.swf.gz", CURIE, "weeks 13 to 18", FEW, CURIE),
)


def main() -> None:
    """Run the study and write its page."""
    if TRACES is None:
        print(
            "left out: four_logs needs SIMSCHED_TRACES, a folder with logs of the Parallel Workloads Archive"
        )
        return
    page = Page("four_logs", "How near is a simulation to the log?")
    page.section(
        "Question",
        """A log has the waits that users had. How near are simulated waits to them, which settings bring
        them nearer on weeks that had no part in the choice, and what is left unexplained?""",
    )
    page.section(
        "Method",
        """The logs are those of the Parallel Workloads Archive, as cleaned by the archive. The machines are
        those that `cluster make --for` makes. `run --queue-policy recorded --audit` plays the log and checks
        the result. The other runs have requests of processors, the order of submission and no further
        setting. `calibrate` begins with EASY and tries all knobs, and fewer of CEA Curie (named below), whose
        machine is large. Of each knob the three best settings are tried beside others.
        Two thirds of the weeks (days) choose, the last third tests. The parts of the logs are
        chosen by a rule: the second and third quarter of the first year, and of CEA Curie, which has as many
        jobs in six weeks as KTH-SP2 in a year, weeks 13 to 18. Policies play whole logs, but of CEA Curie the
        same six weeks. [The log beside the
        simulation](../../docs/reality.md) explains the columns and the error.""",
    )
    found = [of_log(log) for log in LOGS]
    page.section("Recorded runs", "Each of them passed the audit.")
    page.table(
        ["log", "jobs", "late", "longest delay", "largest use", "beyond the machine for"],
        [replay_row(log, one["replay"]) for log, one in zip(LOGS, found, strict=True)],
    )
    page.section("Policies")
    head = ["log", "run", "mean wait", "median", "p95", "bounded slowdown", "rank correlation"]
    rows = [row for log, one in zip(LOGS, found, strict=True) for row in policy_rows(log, one["policies"])]
    page.table([*head, "within 10 min", "within a factor of two", "error"], rows)
    for log, one in zip(LOGS, found, strict=True):
        calibration_section(page, log, one["calibration"])
    page.write()


def of_log(log: Log) -> dict:
    """The figures of one log, from an earlier study if they are kept."""
    return {**kept(log, "policies", of_policies), "calibration": kept(log, "calibration", of_calibration)}


def kept(log: Log, part: str, made) -> dict:
    """A part of the figures of a log: read if it is kept, and else made and kept."""
    file = kept_file(f"{log.file.split('.', 1)[0]}-{part}.json")
    if file is not None and file.is_file():
        return json.loads(file.read_text(encoding="utf-8"))
    with scratch() as folder:
        path, machine = str(Path(str(TRACES)) / log.file), str(folder / "machine.json")
        simsched("cluster", "make", "--for", path, "-o", machine)
        found = made(log, path, machine, folder)
    if file is not None:
        file.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def of_policies(log: Log, file: str, machine: str, folder: Path) -> dict:
    """The recorded run, audited, and the policies beside the log."""
    part = "first(2000)" if QUICK else log.played
    cut = ["-t", part] if part else []
    policies, replay = {}, {}
    for policy in POLICIES:
        place = str(folder / policy)
        more = ["--audit"] if policy == "recorded" else ["--no-allocations"]
        simsched("run", machine, file, "--queue-policy", policy, "-o", place, "--quiet", *more, *cut)
        run = load_run(place)
        policies[policy] = agreement(run.jobs).to_dict()
        replay = replay or {**run.meta["replay"]}
    return {"replay": replay, "policies": policies}


def of_calibration(log: Log, file: str, machine: str, _: Path) -> dict:
    """The calibration of the part of a log."""
    part = ("first(2000)",) if QUICK else (log.part,) if log.part else ()
    knobs = ("order", "epilog") if QUICK else log.knobs
    found = ss.calibrate(
        machine, file, transforms=part, knobs=knobs, beside=BESIDE, workers=WORKERS, progress=told
    )
    return found.to_dict()


def told(done: int, known: int) -> None:
    """Report the progress of a calibration."""
    print(f"{done} of {known} runs", flush=True)


def replay_row(log: Log, replay: dict) -> list[str]:
    """What a recorded run changed of its log."""
    share = f"{replay['peak']:,} of {replay['capacity']:,}"
    over = human.seconds(replay["over"]) if replay["over"] else "never"
    delay = human.seconds(round(replay["max_delay"]))
    return [log.name, f"{replay['jobs']:,}", f"{replay['late']:,}", delay, share, over]


def policy_rows(log: Log, policies: dict) -> list[list[str]]:
    """The log, and each policy against it."""
    one = next(iter(policies.values()))["recorded"]
    rows = [[log.name, "*the log*", *side(one), "", "", "", ""]]
    for name, found in policies.items():
        shares = [human.share(found["near"]), human.share(found["twofold"])]
        waits = [*side(found["simulated"]), rank_text(found["rank"])]
        rows.append(["", f"`{name}`", *waits, *shares, f"{found['error']:.2f}"])
    return rows


def side(figures: dict) -> list[str]:
    """The waits of one side."""
    waits = [human.seconds(round(figures[name])) for name in ("mean", "median", "p95")]
    return [*waits, human.number(figures["slowdown"])]


def calibration_section(page: Page, log: Log, found: dict) -> None:
    """The calibration of one log: errors, the settings that help most, and what is left."""
    blocks = found["blocks"]
    page.section(
        f"Calibration of {log.name}",
        f"""{log.told[0].upper()}{log.told[1:]}: {found["runs"]} runs; {blocks["training"]} {blocks["unit"]}s
        choose, the {blocks["held_out"]} {blocks["unit"]}s after them test. {knobs_of(log)}
        {found["sentence"]}""",
    )
    rows = []
    for label, error, waits in (("as given", "error_before", "held_out_before"),
                                ("calibrated", "error_after", "held_out_after")):  # fmt: skip
        held = found[waits]
        mean, real = (human.seconds(round(held[part]["mean"])) for part in ("simulated", "recorded"))
        errors = [ends(found[error][part]) for part in ("training", "held_out")]
        rows.append([label, *errors, mean, real, rank_text(held["rank"]), human.share(held["twofold"])])
    head = ["", "error in training", "error held out", "mean wait held out", "recorded"]
    page.table([*head, "rank correlation", "within a factor of two"], rows)
    best = sorted(found["alone"], key=lambda one: -one["training"][0])[:MOST_SETTINGS]
    gains = [
        [settings(one), ends(one["training"], sign=True), ends(one["held_out"], sign=True)] for one in best
    ]
    page.table(["setting by itself", "gain in training", "gain held out"], gains)
    for knob, reason in found["untried"].items():
        if reason != "left out by --knobs":
            page.parts.append(f"Not tried: `{knob}`: {reason}.")


def knobs_of(log: Log) -> str:
    """Say which knobs are tried."""
    named = ", ".join(f"`{knob}`" for knob in log.knobs)
    return f"The knobs are {named}." if named else "All knobs are tried."


def rank_text(rank: float | None) -> str:
    """A rank correlation; a dash if all waits of a side are equal."""
    return human.MISSING if rank is None or math.isnan(rank) else f"{rank:.2f}"


def settings(effect: dict) -> str:
    """The settings of a trial in words."""
    return ", ".join(f"{knob}: {label}" for knob, label in effect["settings"].items())


def ends(found: list, *, sign: bool = False) -> str:
    """An interval."""
    form = "{:+.2f}" if sign else "{:.2f}"
    estimate, low, high = (form.format(value) for value in found)
    return f"{estimate} ({low} to {high})"


if __name__ == "__main__":
    main()
