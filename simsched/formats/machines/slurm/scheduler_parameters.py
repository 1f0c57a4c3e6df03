"""``SchedulerParameters`` of slurm.conf(5) as options of the queue policy ``slurm``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.machines.slurm.notation import MAX_COUNT, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.machines.shared.note_collector import NoteCollector


class Parameter(NamedTuple):
    """The option of the policy that a parameter states, its unit in seconds, and its least value.

    With `zero` a value of 0 does not bound anything, and the option is left out.
    """

    option: str
    unit: int = 1
    least: int = 0
    zero: bool = False


PARAMETERS = {
    "bf_interval": Parameter("interval", least=1),
    "bf_window": Parameter("window", unit=60, least=1),
    "bf_resolution": Parameter("resolution", least=1),
    "bf_max_job_test": Parameter("max-job-test", least=1),
    "bf_max_job_start": Parameter("max-job-start", zero=True),
    "bf_max_job_user": Parameter("max-job-user", zero=True),
    "bf_max_job_part": Parameter("max-job-part", zero=True),
    "bf_min_age_reserve": Parameter("min-age-reserve", zero=True),
}
"""Parameter → option of the policy; bf_window is in minutes, the other times are in seconds."""
WITHOUT_EFFECT = frozenset(
    {"bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "bf_yield_rpc_cnt", "max_rpc_cnt"}
    | {"sched_max_job_start", "sched_min_interval", "batch_sched_delay", "build_queue_timeout"}
)
"""Parameters for passes that take time: a pass of a simulation takes none."""
SCHED_INTERVAL = 60
"""Slurm's default of sched_interval, in seconds."""
MOST_SECONDS = 10 * 366 * 86_400


def scheduler_options(
    given: Mapping[str, str], notes: NoteCollector, where: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the policy ``slurm`` that parameters state, and the parameters left out.

    The options are empty if no parameter of backfill is stated. Values that are not valid are faults.
    """
    options: dict[str, Any] = dict(_stated(given, notes, where))
    if "defer" in given and options:
        options["sched-interval"] = _seconds(given, notes, where)
    held = {*PARAMETERS, *WITHOUT_EFFECT, *({"defer", "sched_interval"} if options else ())}
    idle = [name for name in given if name in WITHOUT_EFFECT]
    if options:
        stated = ", ".join(f"{name}={value}" for name, value in options.items())
        text = f"SchedulerParameters: queue-policy = slurm with {stated}"
        if idle:
            text += f"; {', '.join(idle)} without effect, since a pass takes no time"
        notes.assumed(text, where)
    left = [f"{name}={value}" if value else name for name, value in given.items() if name not in held]
    if not options:
        left = [f"{name}={given[name]}" if given[name] else name for name in given if name not in PARAMETERS]
    return options, left


def _stated(given: Mapping[str, str], notes: NoteCollector, where: str) -> Iterator[tuple[str, int]]:
    """Yield the options that parameters state."""
    for name, parameter in PARAMETERS.items():
        if name not in given:
            continue
        value = _whole(given[name], parameter, notes, where, name)
        if value is not None and (value or not parameter.zero):
            yield parameter.option, value * parameter.unit


def _whole(text: str, of: Parameter, notes: NoteCollector, where: str, name: str) -> int | None:
    most = MOST_SECONDS // of.unit if of.unit > 1 or not of.option.startswith("max") else MAX_COUNT
    return notes.attempt(lambda value: whole_number(value, least=of.least, most=most), text, where, name)


def _seconds(given: Mapping[str, str], notes: NoteCollector, where: str) -> int:
    """Return the seconds between two passes of the main scheduler, which ``defer`` takes away from events."""
    found = given.get("sched_interval")
    value = None if found is None else _whole(found, Parameter("", least=1), notes, where, "sched_interval")
    return SCHED_INTERVAL if value is None else value
