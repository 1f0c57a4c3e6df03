"""Slurm's lines on priority as the run options ``order`` and ``priority`` (slurm.conf(5)).

The formulas are those of the plugin priority/multifactor: a sum of weighted factors, cut to a whole number
of at least 1, computed again every PriorityCalcPeriod.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, did_you_mean
from simsched.formats.machines.slurm.keys import GLOBAL
from simsched.formats.machines.slurm.notation import comma_parts, stated, time_limit, whole_number, yes
from simsched.formats.rfc.duration import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simsched.formats.machines.description import QosRow
    from simsched.formats.machines.shared.note_collector import NoteCollector

BASIC, MULTIFACTOR = "priority/basic", "priority/multifactor"
FACTORS = {
    "age": "age",
    "fairshare": "fair-share",
    "jobsize": "size",
    "partition": "queue",
    "qos": "qos",
    "assoc": "account",
}
"""The end of PriorityWeight… → the factor of simsched."""
TRES = {"cpu": "cores", "node": "nodes", "mem": "memory", "gres/gpu": "gpus"}
"""The resources of PriorityWeightTRES → the factor of simsched."""
RESETS = {
    "daily": 86400,
    "weekly": 7 * 86400,
    "monthly": 30 * 86400,
    "quarterly": 91 * 86400,
    "yearly": 365 * 86400,
}
MOST_WEIGHT = 2**32 - 1
_FLAGS = {
    "accrue_always": "", "fair_tree": "", "no_fair_tree": "", "small_relative_to_time": "",
    "no_normal_all": "", "no_normal_assoc": "", "no_normal_part": "", "no_normal_qos": "",
    "no_normal_tree": "", "no_normal_tres": "", "calculate_running": "",
    "depth_oblivious": "the classic factor counts the depth of an account",
    "incr_only": "priorities may decrease",
    "max_tres": "usage is that of cores",
    "max_tres_gres": "usage is that of cores",
}  # fmt: skip
"""Flags in lower case → the effect of leaving them out; empty: it is held, or has no effect here."""
_WEIGHT = re.compile(r"\s*([A-Za-z/:_0-9]+)\s*=\s*(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*")


class PriorityLines:
    """The lines of one configuration: `values` by key in lower case, `where` the place of a key.

    `qos` has the priorities and usage factors of QOS, which are in the accounting database.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        notes: NoteCollector,
        where: Callable[[str], str],
        qos: Sequence[QosRow] = (),
    ) -> None:
        self._values = values
        self._notes = notes
        self._where = where
        self._qos_rows = qos
        self._flags = self._read_flags()

    def options(self, partitions: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Return ``order`` and ``priority``; empty if jobs go by submission.

        partitions : the PriorityJobFactor of each partition.
        """
        kind = self._text("prioritytype").lower()
        if kind == BASIC:
            return {}
        if kind not in ("", MULTIFACTOR):
            self._left_out(f"PriorityType={kind}: jobs are ordered by submission", "prioritytype")
            return {}
        factors = self._factors(partitions or {})
        self._note_qos(factors)
        if not factors:
            return {}
        self._assume(factors)
        return self._with(factors)

    def _with(self, factors: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``order`` and ``priority`` with these factors."""
        priority: dict[str, Any] = {
            "period": format_duration(self._time("prioritycalcperiod", 300.0)),
            "rounding": "down",
            "least": 1,
            "most": MOST_WEIGHT,
            "factors": factors,
        }
        if "accrue_always" in self._flags:
            priority["age-from"] = "submit"
        if "fair-share" in factors:
            priority["fair-share"] = self._fair_share()
        return {"order": "multifactor", "priority": priority}

    # -- factors ----------------------------------------------------------------------------------

    def _factors(self, partitions: Mapping[str, float]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, name in FACTORS.items():
            weight: float = self._whole(f"priorityweight{key}")
            if weight:
                found[name] = {"weight": weight, **getattr(self, f"_{key}")(partitions)}
        for name, weight in self._tres().items():
            plain = "no_normal_tres" in self._flags or "no_normal_all" in self._flags
            found[name] = {"weight": weight, "of": "nothing" if plain else "queue"}
        if not found.get("qos", {"values": True})["values"]:
            del found["qos"]
        return found

    def _age(self, _: Mapping[str, float]) -> dict[str, Any]:
        longest = self._time("prioritymaxage", 7 * 86400.0, least=1)
        return {"max": format_duration(longest)}

    def _fairshare(self, _: Mapping[str, float]) -> dict[str, Any]:
        return {}

    def _jobsize(self, _: Mapping[str, float]) -> dict[str, Any]:
        text = self._text("priorityfavorsmall") or "no"
        small = self._notes.attempt(yes, text, self._where("priorityfavorsmall"), "priorityfavorsmall")
        found: dict[str, Any] = {"favour": "small" if small else "large"}
        if "small_relative_to_time" in self._flags:
            found["relative-to-time"] = True
        return found

    def _partition(self, partitions: Mapping[str, float]) -> dict[str, Any]:
        return {"values": dict(partitions), "default": 0, "normalise": self._normalises("part")}

    def _qos(self, _: Mapping[str, float]) -> dict[str, Any]:
        values = {row.name: row.priority for row in self._qos_rows}
        if not values:
            text = (
                "PriorityWeightQOS: the priorities of QOS are in the accounting database; import the output "
                "of sacctmgr show qos -P as well, or give them as priority.factors.qos.values"
            )
            self._left_out(text, "priorityweightqos")
        elif any(values.values()):
            shown = ", ".join(f"{name} {value}" for name, value in values.items())
            weight = self._whole("priorityweightqos")
            text = f"QOS factor with the weight {weight:g}, of the priorities {shown}"
            self._notes.assumed(text, self._qos_rows[0].where.rpartition(":")[0])
        else:
            values = {}  # all are equal
        return {"values": values, "default": 0, "normalise": self._normalises("qos")}

    def _note_qos(self, factors: Mapping[str, Any]) -> None:
        """Note the values of QOS that the priority does not use."""
        where = self._qos_rows[0].where.rpartition(":")[0] if self._qos_rows else ""
        if any(row.priority for row in self._qos_rows) and "qos" not in factors:
            text = "the priorities of QOS: no slurm.conf gives them a weight (PriorityWeightQOS)"
            self._notes.left_out(text, where)
        used = {row.name: row.usage_factor for row in self._qos_rows if row.usage_factor != 1}
        if used and "fair-share" in factors:
            shown = ", ".join(f"{name} {value:g}" for name, value in used.items())
            self._notes.assumed(f"usage counts with the UsageFactor of its QOS: {shown}", where)
        elif used:
            self._notes.left_out("UsageFactor of QOS: the priority of jobs has no fair share", where)

    def _assoc(self, _: Mapping[str, float]) -> dict[str, Any]:
        return {"normalise": self._normalises("assoc")}

    def _normalises(self, kind: str) -> bool:
        return not {f"no_normal_{kind}", "no_normal_all"} & self._flags

    def _tres(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in comma_parts(self._text("priorityweighttres")):
            pair = _WEIGHT.fullmatch(part)
            if pair is None:
                self._fault(
                    f"PriorityWeightTRES: {part!r} is not a weight", "priorityweighttres", "TYPE=NUMBER"
                )
                continue
            kind = pair[1].lower()
            if kind not in TRES:
                self._left_out(f"PriorityWeightTRES: {part.strip()}", "priorityweighttres")
            elif float(pair[2]):
                found[TRES[kind]] = float(pair[2])
        return found

    # -- fair share -------------------------------------------------------------------------------

    def _fair_share(self) -> dict[str, Any]:
        classic = {"no_fair_tree", "depth_oblivious"} & self._flags
        found: dict[str, Any] = {"method": "classic" if classic else "fair-tree"}
        half_life = self._time("prioritydecayhalflife", 7 * 86400.0)
        found["half-life"] = "inf" if half_life in (0, inf) else format_duration(half_life)
        if classic and self._text("fairsharedampeningfactor"):
            found["dampening"] = self._whole("fairsharedampeningfactor", least=1) or 1
        used = {row.name: row.usage_factor for row in self._qos_rows if row.usage_factor != 1}
        if used:
            found["qos-usage"] = used
        found.update(self._reset())
        return found

    def _reset(self) -> dict[str, Any]:
        text = self._text("priorityusageresetperiod").lower()
        if text in ("", "none"):
            return {}
        key = "priorityusageresetperiod"
        if text in RESETS:
            reset = format_duration(RESETS[text])
            note = (
                f"PriorityUsageResetPeriod={text.upper()}: every {reset} from second 0, whatever the calendar"
            )
            self._notes.assumed(note, self._where(key))
            return {"reset": reset}
        if text == "now":
            self._left_out("PriorityUsageResetPeriod=NOW: usage counts as it is given", key)
        else:
            expected = "NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY"
            self._fault(f"PriorityUsageResetPeriod: {text!r} is not a period", key, expected)
        return {}

    def _assume(self, factors: Mapping[str, Any]) -> None:
        key = next(
            f"priorityweight{key}"
            for key, name in (*FACTORS.items(), ("tres", ""))
            if self._text(f"priorityweight{key}")
        )
        shown = ", ".join(f"{name} {factor['weight']:g}" for name, factor in factors.items())
        where = self._where("prioritytype") or self._where(key)
        self._notes.assumed(f"order = multifactor, with the weights {shown}", where)
        if "fair-share" in factors:
            text = "fair share: accounts and shares are in the accounting database; without priority.accounts all are equal"  # noqa: E501
            self._notes.assumed(text, where)

    # -- values -----------------------------------------------------------------------------------

    def _read_flags(self) -> set[str]:
        found = {part.strip().lower() for part in comma_parts(self._text("priorityflags"))}
        for flag in sorted(found - _FLAGS.keys()):
            hint = did_you_mean(flag, _FLAGS)
            self._fault(f"PriorityFlags: unknown flag {flag.upper()!r}{hint}", "priorityflags", None)
        for flag in sorted(found & _FLAGS.keys()):
            if _FLAGS[flag]:
                self._left_out(f"PriorityFlags={flag.upper()}: {_FLAGS[flag]}", "priorityflags")
        return found

    def _text(self, key: str) -> str:
        return stated(self._values, key)

    def _time(self, key: str, usual: float, least: float = 0) -> float:
        text = self._text(key)
        if not text:
            return usual

        def read(value: str) -> float:
            found = time_limit(value)
            if found < least:
                raise FormatError(f"{value!r} is too short", expected=f"at least {format_duration(least)}")
            return found

        found = self._notes.attempt(read, text, self._where(key), GLOBAL[key])
        return usual if found is None else found

    def _whole(self, key: str, least: int = 0) -> int:
        text = self._text(key)
        if not text:
            return 0

        def read(value: str) -> int:
            try:
                return whole_number(value, least=least, most=MOST_WEIGHT)
            except FormatError:
                expected = f"a whole number from {least} to {MOST_WEIGHT:,}"
                raise FormatError(f"{value!r} is not a weight", expected=expected) from None

        return self._notes.attempt(read, text, self._where(key), GLOBAL[key]) or 0

    def _left_out(self, text: str, key: str) -> None:
        self._notes.left_out(text, self._where(key))

    def _fault(self, text: str, key: str, expected: str | None) -> None:
        self._notes.fault(text, self._where(key), expected)
