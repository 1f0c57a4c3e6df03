"""The axes of a study file; the name of an axis is the setting that it varies.

=============================  =======================================================
``cluster``, ``workload``      inputs, as at the top of the file
``edits``, ``transforms``      one step or a list of steps; ``[]`` for no step
``load``, ``first`` …          a transform by its name; the value is its argument
``queue-policy``, ``order`` …  a key of a configuration file
``policy-options.KEY``         an option of the queue policy
``priority.fair-share.half-life``, ``queues.batch.priority`` …
                               a key of a table of a configuration file
any name, ``edit`` or          a template and the ``values`` to insert: ``nodes: {edit:
``transform`` and ``values``   "resize(all, {})", values: [200, 240]}``
any other name                 settings with a label and any of ``cluster``, ``edits``,
                               ``workload``, ``transforms``, ``config``
=============================  =======================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.declare.kinds import listed
from simsched.errors import ConfigError, did_you_mean, nearest
from simsched.report.metrics.summary import METRICS
from simsched.simulation.options.run_config import KEYS as OPTION_KEYS
from simsched.simulation.options.run_config import POLICY_OPTIONS, merged
from simsched.study.spec.run_task import canonical_json
from simsched.study.spec.study import SEED, Setting, StudyAxis, TaskChange, column
from simsched.study.spec.study_tables import EDIT, STEP, AxisTemplate
from simsched.workload.transforms.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.text.excerpts import Path as Steps
    from simsched.study.spec.run_task import RunTask
    from simsched.study.spec.study_tables import StudyReader

OPTION = f"{POLICY_OPTIONS}."
TABLES = ("policy", "queues", "priority", "preemption", "licenses", "job-checkpoints", POLICY_OPTIONS)
"""The keys of a configuration file whose values are tables, into which dotted names reach."""
MAX_LABEL = 2.0**63
CUSTOM = ("cluster", "edits", "workload", "transforms", "config")
#: other words that users write → name of the axis
NEAR = {
    **dict.fromkeys(
        ("policy", "policies", "scheduler", "scheduling", "scheduling-policy", "scheduling-policies",
         "queue-policies", "backfill", "backfilling", "algorithm"), "queue-policy"),
    **dict.fromkeys(("match", "matching", "match-policies", "placement", "mapping"), "match-policy"),
    **dict.fromkeys(("machine", "machines", "clusters", "system"), "cluster"),
    **dict.fromkeys(("trace", "traces", "log", "logs", "workloads"), "workload"),
    **dict.fromkeys(("arrival", "arrivals", "loads"), "load"),
    **dict.fromkeys(("run-time", "run-times", "runtimes"), "runtime"),
    **dict.fromkeys(("estimate",), "estimates"),
    **dict.fromkeys(("orders", "ordering", "queue-order"), "order"),
    **dict.fromkeys(("options", "option", "policy-option"), "policy-options.KEY"),
    **dict.fromkeys(("failure", "mtbf"), "failures"),
    "outage": "outages",
    "queue": "queues",
    "edit": "edits",
    "transform": "transforms",
    **dict.fromkeys(("nodes", "size", "sizes"), 'nodes: {edit: "resize(all, {})", values: […]}'),
}  # fmt: skip


def axis_of(name: str, value: Any, base: RunTask, reader: StudyReader) -> StudyAxis:
    """Return the axis of that name; `value` is a list of settings, or a template.

    Raises
    ------
    ConfigError
        for an unknown axis, a value that is not valid, or a label that occurs twice.
    """
    path: Steps = ("axes", name)
    _check_name(name, value, path, reader)
    if isinstance(value, AxisTemplate):
        settings = _templated(name, value, reader)
    else:
        maker = _SettingReader(name, base, reader)
        settings = [maker.setting(item, (*path, number)) for number, item in enumerate(value)]
    seen: set[Any] = set()
    for number, setting in enumerate(settings):
        place = (*path, number)
        if not isinstance(setting.label, str) and not abs(setting.label) < MAX_LABEL:
            raise reader.fault(place, "the label is not a finite number", f"a number below {MAX_LABEL:g}")
        if setting.label in seen:
            raise reader.fault(place, f"the label {setting.label!r} occurs twice")
        seen.add(setting.label)
    return StudyAxis(name, tuple(settings))


def _check_name(name: str, value: Any, path: Steps, reader: StudyReader) -> None:
    if name in {SEED, "seeds"}:
        numbers = isinstance(value, tuple) and all(isinstance(item, int) for item in value)
        seeds = list(value) if numbers else 5
        raise reader.fault(path, "seeds are not an axis", f"`seeds: {seeds}` beside axes", key=True)
    if not name.strip() or column(name) in {"run", "key", SEED, *(known.name for known in METRICS)}:
        raise reader.fault(path, f"{name!r} is reserved or empty", "another name for the axis", key=True)


def _templated(name: str, table: AxisTemplate, reader: StudyReader) -> list[Setting]:
    """Return the settings of a template and values."""
    path: Steps = ("axes", name)
    kind = EDIT if table.transform is None else STEP
    template = (table.edit or "") + (table.transform or "")
    if (table.edit is None) == (table.transform is None) or "{}" not in template:
        raise reader.fault(path, "the axis has no template", "edit or transform with {} for the value")
    settings = []
    for number, item in enumerate(table.values):
        spot = (*path, "values", number)
        if isinstance(item, dict | list) or item is None:
            raise reader.fault(spot, "the value does not fit a template", "a number or a text")
        text = reader.read(kind, template.replace("{}", _word(item)), spot)
        change = TaskChange(edits=(text,)) if kind is EDIT else TaskChange(transforms=(text,))
        settings.append(Setting(_label(item), change))
    return settings


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _label(value: Any) -> str | float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _word(value)


@dataclass(frozen=True)
class _SettingReader:
    """Reads the settings of one axis from its values."""

    name: str
    base: RunTask
    reader: StudyReader

    def setting(self, value: Any, path: Steps) -> Setting:
        """Return the setting of one value."""
        given = value if isinstance(value, dict) else {}
        is_input = self.name in {"cluster", "workload"}
        several = not is_input and "label" in given and not given.keys().isdisjoint(CUSTOM)
        if several or not (is_input or self._known):  # it changes several parts, whatever its name
            return self._custom(value, path)
        if set(given) == {"label", "value"}:
            return Setting(self._given_label(given, path), self.change(given["value"], (*path, "value")))
        label = self._input_label(value) if is_input else self._own_label(value, path)
        return Setting(label, self.change(value, path))

    @property
    def _known(self) -> bool:
        name = self.name
        options = name.replace("_", "-") in OPTION_KEYS or self._table in TABLES
        return options or name in STEPS or name in {"edits", "transforms"}

    @property
    def _table(self) -> str:
        """The key of the table into which a dotted name reaches; empty without a dot."""
        table, dot, _ = self.name.partition(".")
        return table.replace("_", "-") if dot else ""

    def change(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of one value of a known axis."""
        name = self.name
        if name == "cluster":
            source, edits = self.reader.cluster(value, path)
            return TaskChange(cluster=source, edits=edits)
        if name == "workload":
            source, steps = self.reader.workload(value, path)
            return TaskChange(workload=source, transforms=steps)
        if name in {"edits", "transforms"}:
            return self._steps(value, path)
        if name in STEPS:
            return self._transform(value, path)
        return self._option(value, path)

    def _steps(self, value: Any, path: Steps) -> TaskChange:
        kind = EDIT if self.name == "edits" else STEP
        if isinstance(value, str):
            steps: Any = (self.reader.read(kind, value, path),)
        elif isinstance(value, list) and all(isinstance(step, str) for step in value):
            steps = self.reader.read(listed(kind), value, path)
        else:
            raise self.reader.fault(path, "these are not steps", "a text or a list of texts")
        return TaskChange(edits=steps) if kind is EDIT else TaskChange(transforms=steps)

    def _transform(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of an axis that has the name of a transform."""
        if value is False:
            return TaskChange()
        inside = value if isinstance(value, list) else [] if value is True else [value]
        if any(isinstance(item, dict | list | bool) or item is None for item in inside):
            text = f"this is not an argument of {self.name}"
            raise self.reader.fault(path, text, "a number or a text")
        text = f"{self.name}({', '.join(map(str, inside))})" if inside else self.name
        return TaskChange(transforms=(self.reader.read(STEP, text, path),))

    def _option(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of one option; options of a policy are checked later, with their policy."""
        if self._table in TABLES:
            return self._inside(value, path)
        key = self.name.replace("_", "-")
        if key == "policy" and not isinstance(
            value, dict
        ):  # `policy` is a table of a configuration and not the queue policy
            raise self._unknown()
        if key not in {"policy-options", "policy"}:
            self.reader.check_options({key: value}, self.reader.place(path))
        return TaskChange(options={key: value})

    def _inside(self, value: Any, path: Steps) -> TaskChange:
        """Return the change of a key of a table, which may be in a table of that."""
        _, *keys = self.name.split(".")
        if not all(keys):
            raise self._misnamed(f"{self.name!r} names no key of a table", "TABLE.KEY")
        options: dict[str, Any] = {}
        inner, known = options, self.base.options.get(self._table)
        if self._table == "queues" and keys[0] not in (known or {}):
            text = f"there is no queue {keys[0]!r}{did_you_mean(keys[0], known or ())}"
            raise self._misnamed(text, ", ".join(known or ()) or "queues in config")
        for key in (self._table, *keys[:-1]):
            inner[key] = {}
            inner = inner[key]
        for depth, key in enumerate(keys[:-1], 1):
            known = known.get(key) if isinstance(known, dict) else None
            if known is not None and not isinstance(known, dict):
                table = ".".join((self._table, *keys[:depth]))
                raise self.reader.fault(path, f"{table} is not a table", f"{table}: {{KEY: …}}")
        inner[keys[-1]] = value
        if self._table != POLICY_OPTIONS:
            self.reader.check_options(merged(self.base.options, options), self.reader.place(path))
        return TaskChange(options=options)

    def _misnamed(self, message: str, expected: str) -> ConfigError:
        """Return the error of the name of the axis."""
        return self.reader.fault(("axes", self.name), message, expected, key=True)

    # --- settings with a name of their own

    def _custom(self, value: Any, path: Steps) -> Setting:
        if not isinstance(value, dict):
            raise self._unknown()
        label = self._given_label(value, path)
        for key in value:
            if key not in {"label", *CUSTOM}:
                expected = f"label, {', '.join(CUSTOM)}"
                raise self.reader.fault((*path, key), f"unknown key {key!r}", expected, key=True)
        change = TaskChange()
        for key in ("cluster", "workload", "edits", "transforms"):
            if key in value:
                part = _SettingReader(key, self.base, self.reader).change(value[key], (*path, key))
                change = _joined(change, part)
        options = value.get("config", {})
        if not isinstance(options, dict):
            raise self.reader.fault(path, "these are not options", "config: a mapping")
        options = {str(key).replace("_", "-"): item for key, item in options.items()}
        self.reader.check_options(merged(self.base.options, options), self.reader.place(path))
        return Setting(label, _joined(change, TaskChange(options=options)))

    def _unknown(self) -> ConfigError:
        """Return the error of an unknown axis, with the nearest known name."""
        known = [*sorted(set(OPTION_KEYS) - {SEED, "policy"}), f"{OPTION}KEY"]
        known += ["cluster", "workload", "edits", "transforms", *STEPS]
        near = meant(self.name, known)
        table, dot, keys = self.name.partition(".")
        if dot and (other := nearest(table, TABLES)) is not None:
            near = f"{other}.{keys}"
        hint = f"; did you mean {near}?" if near else ""
        expected = f"{', '.join(known)}; or settings with labels"
        return self._misnamed(f"unknown axis {self.name!r}{hint}", expected)

    def _given_label(self, value: dict[str, Any], path: Steps) -> str | float:
        label = value.get("label")
        if isinstance(label, bool) or not isinstance(label, str | int | float) or label == "":
            raise self.reader.fault(path, "the setting has no label", "label: a text or a number")
        return label

    def _input_label(self, value: Any) -> str | float:
        if isinstance(value, str):
            return value
        row = value if isinstance(value, dict) else {}
        label = row.get("label", row.get("file"))
        if isinstance(label, str | int | float) and "edits" not in row and "transforms" not in row:
            return label
        return row["label"] if "label" in row else canonical_json(value).decode()[:60]

    def _own_label(self, value: Any, path: Steps) -> str | float:
        """Return the label of a plain value; other values need a label of their own."""
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            return "; ".join(map(str, value)) or "none"
        if isinstance(value, dict | list) or value is None:
            raise self.reader.fault(path, "the value needs a label", "{label: …, value: …}")
        return _label(value)


def meant(name: str, known: Sequence[str]) -> str | None:
    """Return the known axis nearest to a word in meaning or spelling, or None.

    >>> meant("Policy", ["queue-policy"]), meant("queue-polcy", ["queue-policy"]), meant("x", ["load"])
    ('queue-policy', 'queue-policy', None)
    """
    word = name.strip().lower().replace("_", "-").replace(" ", "-")
    return NEAR.get(word) or nearest(word, known)


def _joined(first: TaskChange, second: TaskChange) -> TaskChange:
    return TaskChange(
        cluster=second.cluster or first.cluster,
        edits=first.edits + second.edits,
        workload=second.workload or first.workload,
        transforms=first.transforms + second.transforms,
        options=merged(first.options, second.options),
    )
