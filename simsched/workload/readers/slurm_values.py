"""The small notations of Slurm: times, TRES, memory, states, feature expressions."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.workload.mapping import Flat

if TYPE_CHECKING:
    from simsched.formats.rfc.constraint import Constraint

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


def gpus_of(parts: dict[str, str]) -> int | None:
    """Return the gpus in a TRES list: ``gres/gpu``, else the sum of its types.

    >>> gpus_of({"gres/gpu:a100": "2", "gres/gpu:v100": "1"}), gpus_of({"cpu": "4"})
    (3, None)
    """
    whole = whole_number(parts.get("gres/gpu", ""))
    if whole is not None:
        return whole
    typed = [whole_number(value) for key, value in parts.items() if key.startswith("gres/gpu:")]
    return sum(number or 0 for number in typed) or None


def gpu_type(parts: dict[str, str]) -> str | None:
    """Return the one type of gpu in a TRES list; None without a type, and for several.

    >>> gpu_type({"gres/gpu": "2", "gres/gpu:a100": "2"}), gpu_type({"gres/gpu": "2"})
    ('a100', None)
    """
    found = [key for key, value in parts.items() if key.startswith("gres/gpu:") and value]
    return found[0].removeprefix("gres/gpu:") if len(found) == 1 else None


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


@dataclass(frozen=True, slots=True)
class RequestedTres:
    """The TRES that a record requests, as Slurm writes them."""

    req_cpus: str = ""
    alloc_cpus: str = ""
    req_nodes: str = ""
    alloc_nodes: str = ""
    req_tres: str = ""
    alloc_tres: str = ""
    req_mem: str = ""
    alloc_gres: str = ""
    req_gres: str = ""
    gpus: str = ""

    def flat(self) -> Flat:
        """Return the flat counts: the requested ones, else the allocated ones."""
        wanted, given = tres(self.req_tres), tres(self.alloc_tres)
        procs = _first(self.req_cpus, wanted.get("cpu"), self.alloc_cpus, given.get("cpu"))
        nodes = _first(self.req_nodes, wanted.get("node"), self.alloc_nodes, given.get("node"))
        (asked, asked_type), (held, held_type) = gpus_of_gres(self.req_gres), gpus_of_gres(self.alloc_gres)
        gpus: int | None = gpus_of(wanted) or gpus_of(given) or held or asked * (nodes or 1)
        gpus = gpus or whole_number(self.gpus) or None
        kind = gpu_type(wanted) or asked_type
        if not kind and not gpus_of(wanted) and not self.req_gres:
            kind = gpu_type(given) or held_type
        size, memory = kilobytes(self.req_mem or wanted.get("mem") or given.get("mem") or ""), None
        if size is not None and procs:  # rounded up; without a suffix the size is the job's
            copies = {"c": procs, "n": nodes or 1}.get(size[1], 1)
            memory = -(-size[0] * copies // procs)
        return Flat(procs=procs, nodes=nodes, gpus=gpus, gpu_type=kind if gpus else None, memory=memory)


def _first(*texts: str | None) -> int | None:
    """Return the first of these that is a number above 0."""
    return next((number for text in texts if text and (number := _count(text))), None)


def _count(text: str) -> int | None:
    """Return a count of nodes or processors.  Slurm shortens one by K or M only where nothing is lost.

    >>> _count("512"), _count("16K"), _count("2.5K")
    (512, 16384, None)
    """
    power = " KM".find(text[-1]) if text else 0
    number = whole_number(text[:-1] if power > 0 else text)
    return None if number is None else number * 1024 ** max(power, 0)


def features(text: str) -> Constraint | None:
    """Return the constraint of a feature expression: ``a&b|c`` (``&`` and ``,`` bind closer).

    None for an empty one and for one with counts or brackets, which RFC 31 cannot express.

    >>> str(features("ib&big|huge")), features("[rack1*4]")
    ('ib and big or huge', None)
    """
    from simsched.formats.rfc.constraint import Or, Properties

    if not text or re.search(r"[\[\]*()]", text):
        return None
    either = [re.split(r"[&,]", part.strip()) for part in text.split("|")]
    parts = [Properties(tuple(name.strip() for name in names)) for names in either]
    if not all(name and "!" not in name for part in parts for name in part.names):
        return None
    return parts[0] if len(parts) == 1 else Or(tuple(parts))
