"""The axes of a study file: what an axis of each name varies.

=============================  =======================================================
``cluster``, ``workload``      inputs, as at the top of the file
``edits``, ``transforms``      one step, or a list of steps; ``[]`` is none
``load``, ``first`` …          a transform by its name; the value is its argument
``queue-policy``, ``order`` …  what a configuration file may say, by its key
``policy-options.KEY``         an option of the queue policy
any name, ``edit`` or          a template into which each of ``values`` is put: ``nodes:
``transform`` and ``values``   {edit: "resize(all, {})", values: [200, 240]}``
any other name                 settings with a label each and any of ``cluster``,
                               ``edits``, ``workload``, ``transforms``, ``config``
=============================  =======================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, SimschedError
from simsched.report.metrics.summary import METRICS
from simsched.simulation.options.run_config import KEYS as OPTION_KEYS
from simsched.spelling import nearest
from simsched.study.runs.task import canonical
from simsched.study.spec.study import SEED, Axis, Change, Setting, column, merged
from simsched.workload.transforms.steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.text.excerpts import Path as Steps
    from simsched.study.runs.task import Task
    from simsched.study.spec.finder import Finder

OPTION = "policy-options."
MAX_LABEL = 2.0**63
CUSTOM = ("cluster", "edits", "workload", "transforms", "config")
#: other words for axes, as people write them → what the axis is called
NEAR = {
    **dict.fromkeys(
        ("policy", "policies", "scheduler", "scheduling", "scheduling-policy", "scheduling-policies",
         "queue-policies", "backfill", "backfilling", "algorithm"), "queue-policy"),
    **dict.fromkeys(("match", "matching", "match-policies", "placement", "mapping"), "match-policy"),
    **dict.fromkeys(("machine", "machines", "clusters", "system"), "cluster"),
    **dict.fromkeys(("trace", "traces", "log", "logs", "workloads"), "workload"),
    **dict.fromkeys(("arrival", "arrivals", "loads"), "load"),
    **dict.fromkeys(("run-time", "run-times", "runtimes"), "runtime"),
    **dict.fromkeys(("estimate", "limits"), "estimates"),
    **dict.fromkeys(("orders", "ordering", "queue-order", "priority"), "order"),
    **dict.fromkeys(("options", "option", "policy-option"), "policy-options.KEY"),
    **dict.fromkeys(("failure", "mtbf"), "failures"),
    "outage": "outages",
    "queue": "queues",
    "edit": "edits",
    "transform": "transforms",
    **dict.fromkeys(("nodes", "size", "sizes"), 'nodes: {edit: "resize(all, {})", values: […]}'),
}  # fmt: skip


def axis_of(name: str, value: Any, base: Task, finder: Finder) -> Axis:
    """Return the axis of that name.

    Raises
    ------
    ConfigError
        For an axis that does not exist, a value that it does not take, or a label given twice.
    """
    path: Steps = ("axes", name)
    _check_name(name, value, path, finder)
    if isinstance(value, dict):
        settings = _templated(name, value, finder)
    else:
        maker = _Maker(name, base, finder)
        settings = [maker.setting(item, (*path, number)) for number, item in enumerate(value)]
    seen: set[Any] = set()
    for number, setting in enumerate(settings):
        place = finder.document.place((*path, number))
        if not isinstance(setting.label, str) and not abs(setting.label) < MAX_LABEL:
            raise ConfigError(
                "a label that is no finite number", where=place, expected=f"below {MAX_LABEL:g}"
            )
        if setting.label in seen:
            raise ConfigError(f"the label {setting.label!r} occurs twice", where=place)
        seen.add(setting.label)
    return Axis(name, tuple(settings))


def _check_name(name: str, value: Any, path: Steps, finder: Finder) -> None:
    place = finder.document.place(path, key=True)
    if name in {SEED, "seeds"}:
        meant = value if isinstance(value, list) and all(isinstance(item, int) for item in value) else 5
        raise ConfigError("seeds are no axis", where=place, expected=f"`seeds: {meant}` beside axes")
    if not name.strip() or column(name) in {"run", "key", SEED, *(known.name for known in METRICS)}:
        raise ConfigError(f"no axis can be called {name!r}", where=place, expected="a name of its own")


def _templated(name: str, value: dict[str, Any], finder: Finder) -> list[Setting]:
    """Return the settings of a template and values."""
    kinds = [kind for kind in ("edit", "transform") if kind in value]
    path: Steps = ("axes", name)
    if len(kinds) != 1 or "{}" not in value[kinds[0]]:
        place = finder.document.place(path)
        raise ConfigError("no template", where=place, expected="edit or transform with {} for the value")
    settings = []
    for number, item in enumerate(value["values"]):
        spot = (*path, "values", number)
        if isinstance(item, dict | list) or item is None:
            raise ConfigError(
                "no value of a template", where=finder.document.place(spot), expected="a number or a text"
            )
        text = value[kinds[0]].replace("{}", _word(item))
        if kinds[0] == "edit":
            finder.check_edit(text, spot)
            settings.append(Setting(_label(item), Change(edits=(text,))))
        else:
            finder.check_step(text, spot)
            settings.append(Setting(_label(item), Change(transforms=(text,))))
    return settings


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _label(value: Any) -> str | float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _word(value)


class _Maker:
    """Makes the settings of one axis from its values."""

    def __init__(self, name: str, base: Task, finder: Finder) -> None:
        self.name = name
        self.base = base
        self.finder = finder

    def setting(self, value: Any, path: Steps) -> Setting:
        """Return the setting of one value."""
        name = self.name
        if self._is_custom(value):
            return self._custom(value, path)
        if isinstance(value, dict) and set(value) == {"label", "value"} and self._known:
            label = self._said(value, path)
            return Setting(label, self._change(value["value"], (*path, "value")))
        if name in {"cluster", "workload"}:
            return Setting(self._input_label(value), self._change(value, path))
        if self._known:
            return Setting(self._own_label(value, path), self._change(value, path))
        return self._custom(value, path)

    def _is_custom(self, value: Any) -> bool:
        """Whether a value is a setting of several things, whatever the axis is called."""
        inputs = {"cluster", "workload"}
        return (
            self.name not in inputs
            and isinstance(value, dict)
            and "label" in value
            and not {*CUSTOM}.isdisjoint(value)
        )

    @property
    def _known(self) -> bool:
        name = self.name
        options = name.replace("_", "-") in OPTION_KEYS or name.startswith(OPTION)
        return options or name in STEPS or name in {"cluster", "workload", "edits", "transforms"}

    def _change(self, value: Any, path: Steps) -> Change:
        name = self.name
        if name == "cluster":
            source, edits = self.finder.cluster(self._row(value, "cluster", path), path)
            return Change(cluster=source, edits=edits)
        if name == "workload":
            source, steps = self.finder.workload(self._row(value, "workload", path), path)
            return Change(workload=source, transforms=steps)
        if name in {"edits", "transforms"}:
            return self._steps(value, path)
        if name in STEPS:
            return self._transform(value, path)
        return self._option(value, path)

    def _row(self, value: Any, kind: str, path: Steps) -> Any:
        """Return an input within an axis, checked like the one at the top of the file."""
        from simsched.formats.study_document import study_document

        other = "workload" if kind == "cluster" else "cluster"
        try:
            study_document({kind: value, other: "-"}, "", "")
        except SimschedError as error:
            inside = (error.where or "").removeprefix(kind).lstrip(".")
            where = " ".join(filter(None, (self.finder.document.place(path), inside)))
            raise ConfigError(error.message, where=where, expected=error.expected) from None
        return value

    def _steps(self, value: Any, path: Steps) -> Change:
        steps = [value] if isinstance(value, str) else value
        if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
            place = self.finder.document.place(path)
            raise ConfigError("no steps", where=place, expected="a text or a list of texts")
        if self.name == "edits":
            self.finder.check_edits(steps, path)
            return Change(edits=tuple(steps))
        if isinstance(value, str):
            self.finder.check_step(value, path)
        else:
            self.finder.check_steps(steps, path)
        return Change(transforms=tuple(steps))

    def _transform(self, value: Any, path: Steps) -> Change:
        """Return the change of a transform that is called by its name."""
        if value is False:
            return Change()
        inside = value if isinstance(value, list) else [] if value is True else [value]
        if any(isinstance(item, dict | list | bool) or item is None for item in inside):
            place = self.finder.document.place(path)
            raise ConfigError(f"no argument of {self.name}", where=place, expected="a number or a text")
        text = f"{self.name}({', '.join(map(str, inside))})" if inside else self.name
        self.finder.check_step(text, path)
        return Change(transforms=(text,))

    def _option(self, value: Any, path: Steps) -> Change:
        """Return the change of one option; those of a policy are checked with the policy they go with."""
        place = self.finder.document.place(path)
        if self.name.startswith(OPTION):
            return Change(options={"policy-options": {self.name.removeprefix(OPTION): value}})
        key = self.name.replace("_", "-")
        if key == "policy" and not isinstance(value, dict):  # a table of a configuration, and no queue policy
            raise self._unknown()
        if key not in {"policy-options", "policy"}:
            self.finder.check_options({key: value}, place)
        return Change(options={key: value})

    # --- settings with a name of their own

    def _custom(self, value: Any, path: Steps) -> Setting:
        place = self.finder.document.place(path)
        if not isinstance(value, dict):
            raise self._unknown()
        label = self._said(value, path)
        for key in value:
            if key not in {"label", *CUSTOM}:
                spot = self.finder.document.place((*path, key), key=True)
                raise ConfigError(f"unknown key {key!r}", where=spot, expected=f"label, {', '.join(CUSTOM)}")
        change = Change()
        for key in ("cluster", "workload", "edits", "transforms"):
            if key in value:
                part = _Maker(key, self.base, self.finder)._change(value[key], (*path, key))
                change = _joined(change, part)
        options = value.get("config", {})
        if not isinstance(options, dict):
            raise ConfigError("no options", where=place, expected="config: a mapping")
        options = {key.replace("_", "-"): item for key, item in options.items()}
        self.finder.check_options(merged(self.base.options, options), place)
        return Setting(label, _joined(change, Change(options=options)))

    def _unknown(self) -> ConfigError:
        """Return the error of an axis that does not exist, with the name that may be meant."""
        known = [*sorted(set(OPTION_KEYS) - {SEED, "policy"}), f"{OPTION}KEY"]
        known += ["cluster", "workload", "edits", "transforms", *STEPS]
        where = self.finder.document.place(("axes", self.name), key=True)
        near = meant(self.name, known)
        expected = f"{', '.join(known)}; or settings with a label each"
        said = f"unknown axis {self.name!r}"
        return ConfigError(f"{said}; did you mean {near}?" if near else said, where=where, expected=expected)

    def _said(self, value: dict[str, Any], path: Steps) -> str | float:
        label = value.get("label")
        if isinstance(label, bool) or not isinstance(label, str | int | float) or label == "":
            place = self.finder.document.place(path)
            raise ConfigError("a setting without a label", where=place, expected="label: a text or a number")
        return label

    def _input_label(self, value: Any) -> str | float:
        if isinstance(value, str):
            return value
        row = value if isinstance(value, dict) else {}
        said = row.get("label", row.get("file"))
        if isinstance(said, str | int | float) and "edits" not in row and "transforms" not in row:
            return said
        return row["label"] if "label" in row else canonical(value).decode()[:60]

    def _own_label(self, value: Any, path: Steps) -> str | float:
        """Return the label of a plain value; what is not plain has to be given one."""
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            return "; ".join(map(str, value)) or "none"
        if isinstance(value, dict | list) or value is None:
            place = self.finder.document.place(path)
            raise ConfigError("this needs a label", where=place, expected="{label: …, value: …}")
        return _label(value)


def meant(name: str, known: Sequence[str]) -> str | None:
    """Return the name of an axis that is near to a word, in meaning or in letters; None if none is.

    >>> meant("Policy", ["queue-policy"]), meant("queue-polcy", ["queue-policy"]), meant("x", ["load"])
    ('queue-policy', 'queue-policy', None)
    """
    word = name.strip().lower().replace("_", "-").replace(" ", "-")
    return NEAR.get(word) or nearest(word, known)


def _joined(first: Change, second: Change) -> Change:
    return Change(
        cluster=second.cluster or first.cluster,
        edits=first.edits + second.edits,
        workload=second.workload or first.workload,
        transforms=first.transforms + second.transforms,
        options=merged(first.options, second.options),
    )
