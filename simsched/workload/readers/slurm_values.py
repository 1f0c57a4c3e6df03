"""Values as Slurm writes them: times, TRES, memory, energies and states; PBS and Grid Engine share some."""

from __future__ import annotations

import re
from contextlib import suppress

from simsched.errors import FormatError
from simsched.workload.mapping import Flat

_CLOCK = re.compile(r"(?:(\d{1,7})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d{1,2})(?:\.\d+)?")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)([KMGTP]?)([cn]?)")
_KILO = {"K": 1, "": 1024, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}
_ENERGY = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)([KMGT]?)")
MOST_ENERGY = 2**53
"""Larger numbers are the codes that Slurm has for an unknown value."""
NO_LIMIT = frozenset(("", "UNLIMITED", "Partition_Limit", "INVALID", "None", "Unknown"))

#: Slurm's base states and the results they mean; jobs in other states never ended.
RESULTS = {
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "NODE_FAIL": "FAILED",
    "BOOT_FAIL": "FAILED",
    "LAUNCH_FAILED": "FAILED",
    "OUT_OF_MEMORY": "FAILED",
    "PREEMPTED": "CANCELED",
    "REVOKED": "CANCELED",
    "CANCELLED": "CANCELED",
    "DEADLINE": "TIMEOUT",
    "TIMEOUT": "TIMEOUT",
}
UNFINISHED = frozenset(
    ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED")
)


def result_of(state: str, unknown: dict[str, int]) -> str | None:
    """Return the result that a base state means; a state that Slurm does not have is counted in `unknown`."""
    found = RESULTS.get(state)
    if found is None and state:
        unknown[state] = unknown.get(state, 0) + 1
    return found


def joules(text: str) -> int | None:
    """Return an energy in whole J, which sacct shortens by powers of 1000; None where none was measured.

    >>> joules("4500"), joules("1.25M"), joules("0"), joules("")
    (4500, 1250000, None, None)
    """
    match = _ENERGY.fullmatch(text)
    amount = round(float(match[1]) * 1000 ** " KMGT".index(match[2] or " ")) if match else 0
    return amount if 0 < amount < MOST_ENERGY else None


def clock(text: str) -> int | None:
    """Return the seconds of ``[D-]HH:MM:SS`` or ``MM:SS``; None for any other text.

    >>> clock("1-02:03:04"), clock("10:30"), clock("UNLIMITED")
    (93784, 630, None)
    """
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def clock_or_seconds(text: str) -> int | None:
    """Return the seconds of a limit of PBS and Grid Engine; None if it states none, or 0.

    >>> clock_or_seconds("02:00:00"), clock_or_seconds("600"), clock_or_seconds("")
    (7200, 600, None)
    """
    return clock(text) or (int(text) if text.isdecimal() and len(text) < 12 else 0) or None


def tres(text: str) -> dict[str, str]:
    """Return the parts of a TRES list.

    >>> tres("billing=4,cpu=4,gres/gpu=2,mem=16G,node=1")["gres/gpu"]
    '2'
    """
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def gpus_of(parts: dict[str, str]) -> tuple[int | None, str | None]:
    """Return the gpus in a TRES list, ``gres/gpu``, else the sum of its types; and their type if it is one.

    >>> gpus_of({"gres/gpu:a100": "2", "gres/gpu:v100": "1"}), gpus_of({"gres/gpu": "2", "cpu": "4"})
    ((3, None), (2, None))
    """
    typed = {
        key.removeprefix("gres/gpu:"): value for key, value in parts.items() if key.startswith("gres/gpu:")
    }
    types = [kind for kind, value in typed.items() if value]
    number = whole_number(parts.get("gres/gpu", ""))
    if number is None:
        number = sum(whole_number(value) or 0 for value in typed.values()) or None
    return number, types[0] if len(types) == 1 else None


def gpus_of_gres(text: str) -> tuple[int, str | None]:
    """Return the gpus of a list of generic resources, and their type if there is one; ``gpu`` alone is one.

    In a job's request the count is per node, in its allocation it is the sum over its nodes.

    >>> gpus_of_gres("gpu:2"), gpus_of_gres("gres/gpu:a100:4(S:0-1),nic:1"), gpus_of_gres("gpu:tesla,nvme:2")
    ((2, None), (4, 'a100'), (1, 'tesla'))
    """
    from simsched.formats.machines.slurm.notation import comma_parts, gres_of

    entries = []
    for part in comma_parts(re.sub("gres[/:]", "", text).replace("=", ":")):
        with suppress(FormatError):  # another one may be of a form of its own
            entries += gres_of(part)
    gpus = [entry for entry in entries if entry.name == "gpu" and entry.count < 10**9]
    types = [entry.type for entry in gpus if entry.type]
    return sum(entry.count for entry in gpus), types[0] if len(types) == 1 else None


def kilobytes(text: str) -> tuple[int, str] | None:
    """Return (KB, per) of a memory size; `per` is ``c`` for a cpu, ``n`` for a node, or empty.

    >>> kilobytes("16Gn"), kilobytes("4000Mc"), kilobytes("0")
    ((16777216, 'n'), (4096000, 'c'), None)
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        return None
    size = round(float(match.group(1)) * _KILO[match.group(2)])
    return (size, match.group(3)) if size else None


def whole_number(text: str) -> int | None:
    """Return a plain whole number, else None (``2.5K`` is none: it was rounded)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def requested(
    req_cpus: str = "",
    alloc_cpus: str = "",
    req_nodes: str = "",
    alloc_nodes: str = "",
    req_tres: str = "",
    alloc_tres: str = "",
    req_mem: str = "",
    alloc_gres: str = "",
    req_gres: str = "",
    more_gpus: str = "",
) -> Flat:
    """Return the flat counts of a record with these cells: the requested ones, else the allocated ones."""
    wanted, given = tres(req_tres), tres(alloc_tres)
    procs = _first(req_cpus, wanted.get("cpu"), alloc_cpus, given.get("cpu"))
    nodes = _first(req_nodes, wanted.get("node"), alloc_nodes, given.get("node"))
    (counted, type_), (spent, spent_type) = gpus_of(wanted), gpus_of(given)
    (asked, asked_type), (held, held_type) = gpus_of_gres(req_gres), gpus_of_gres(alloc_gres)
    gpus: int | None = counted or spent or held or asked * (nodes or 1) or whole_number(more_gpus) or None
    kind = type_ or asked_type
    if not kind and not counted and not req_gres:
        kind = spent_type or held_type
    size, memory = kilobytes(req_mem or wanted.get("mem") or given.get("mem") or ""), None
    if size is not None and procs:  # rounded up; without a suffix the size is the job's
        copies = {"c": procs, "n": nodes or 1}.get(size[1], 1)
        memory = -(-size[0] * copies // procs)
    return Flat(procs=procs, nodes=nodes, gpus=gpus, gpu_type=kind if gpus else None, memory=memory)


def _first(*texts: str | None) -> int | None:
    """Return the first count of nodes or processors above 0; Slurm shortens one if nothing is lost.

    >>> _first("", "16K", "512"), _first("2.5K", None)
    (16384, None)
    """
    for text in filter(None, texts):
        power = max(" KM".find(text[-1]), 0)
        if number := whole_number(text[:-1] if power else text):
            return number << 10 * power
    return None
