"""`LogModel` as a document: the YAML file that `workload fit` writes and that people edit."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, SimschedError, did_you_mean
from simsched.formats.rfc.clock import Clock, is_date, parse_date, zone_name
from simsched.formats.rfc.duration import format_duration, parse_duration
from simsched.workload.flat_counts import demand
from simsched.workload.models.distribution import Distribution
from simsched.workload.models.log_model import DAY, JobClass, LogModel
from simsched.workload.models.shares import Shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.formats.jobspec.jobspec import Jobspec

KEYS = ("name", "description", "start", "zone", "span", "jobs", "growth", "users", "processors", "classes")
CLASS_KEYS = (
    "name", "factor", "batches", "users", "skew", "hours", "weekdays", "variation", "jobs", "gap", "repeat",
    "alike", "requests", "limits", "runtime", "correlation", "memory", "queues",
)  # fmt: skip
_NEEDED = ("name", "batches", "requests", "runtime")


def model_from_dict(document: Any, where: str = "model") -> LogModel:
    """Read a model from a mapping such as a YAML file holds.

    Raises
    ------
    ConfigError
        With the place, when a key is unknown or missing, or a value is invalid.
    """
    _known(document, KEYS, where)
    rows = document.get("classes")
    if not isinstance(rows, list) or not rows:
        raise ConfigError("the model has no classes", where=where, expected="classes: a list")
    if "span" not in document:
        raise ConfigError("the model has no end", where=where, expected="span: such as 30d")
    start, header = _start(document, where)
    if "processors" in document:
        header["MaxProcs"] = str(int(_number(document, "processors", 0, where, least=1)))
    classes = tuple(_class(row, f"{where}: classes[{place}]") for place, row in enumerate(rows))
    names = [one.name for one in classes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"two classes have the name {twice!r}", where=where, expected="different names")
    jobs = document.get("jobs")
    return LogModel(
        classes=classes,
        span=_seconds(document["span"], f"{where}: span"),
        start=start,
        growth=_number(document, "growth", 1.0, where, least=1e-3, most=1e3),
        population=int(_number(document, "users", 0, where)),
        jobs=None if jobs is None else int(_number(document, "jobs", 0, where)),
        name=str(document.get("name", "model")),
        header=header,
    )


def _start(document: dict[str, Any], where: str) -> tuple[float, dict[str, str]]:
    """Return the local time of second 0 (seconds after 1970), and the header that states it."""
    text = document.get("start")
    if text is None:
        return 4.0 * DAY, {}
    if not is_date(text):
        raise ConfigError(
            f"{text!r} is not a date", where=f"{where}: start", expected="such as 2024-03-01T08:00"
        )
    zone = zone_name(str(document.get("zone", "UTC")), f"{where}: zone")
    begin = Clock(0, zone).seconds(parse_date(text, f"{where}: start"), f"{where}: start")
    import numpy as np

    local = float(Clock(begin, zone).local_seconds(np.zeros(1))[0])
    return local, {"UnixStartTime": f"{begin:.15g}", "TimeZoneString": zone}


def _class(row: Any, where: str) -> JobClass:
    from simsched.formats.jobspec.jobspec import Jobspec

    _known(row, CLASS_KEYS, where)
    missing = [key for key in _NEEDED if key not in row]
    if missing:
        raise ConfigError(f"the key {missing[0]!r} is missing", where=where, expected=", ".join(_NEEDED))

    def shape(value: Any) -> Jobspec:
        if not isinstance(value, str):
            raise ConfigError(f"{value!r} is not a shape", where=f"{where}.requests", expected="slot=4/core")
        found: Jobspec = _placed(lambda: Jobspec.from_shape(value), f"{where}.requests")
        return found

    requests = Shares.parse(row["requests"], shape, f"{where}.requests")
    limits = row.get("limits")
    return JobClass(
        name=str(row["name"]),
        factor=_number(row, "factor", 1.0, where, most=1e6),
        batches=_number(row, "batches", 0, where),
        users=int(_number(row, "users", 0, where, most=1e6)),
        skew=_number(row, "skew", 1.0, where, most=100),
        hours=_rates(row.get("hours"), 24, f"{where}.hours"),
        weekdays=_rates(row.get("weekdays"), 7, f"{where}.weekdays"),
        variation=_number(row, "variation", 0.0, where, most=100),
        jobs=_sorted(row.get("jobs", 1), lambda value: _count(value, f"{where}.jobs"), f"{where}.jobs"),
        gap=Distribution.parse(row.get("gap", 0), f"{where}.gap"),
        repeat=_number(row, "repeat", 0.0, where, most=1),
        alike=_number(row, "alike", 0.0, where, most=1),
        requests=requests.sorted_by(lambda spec: (demand(spec).procs, spec.to_shape())),
        limits=None
        if limits is None
        else _sorted(limits, lambda value: _seconds(value, f"{where}.limits"), f"{where}.limits"),
        runtime=Distribution.parse(row["runtime"], f"{where}.runtime"),
        correlation=_correlation(row.get("correlation"), f"{where}.correlation"),
        memory=None if row.get("memory") is None else Distribution.parse(row["memory"], f"{where}.memory"),
        queues=None if row.get("queues") is None else _sorted(row["queues"], str, f"{where}.queues"),
    )


def _sorted(value: Any, read: Callable[[Any], Any], where: str) -> Shares[Any]:
    """Read shares; the order of the keys in the document does not matter."""
    return Shares.parse(value, read, where).sorted_by(lambda item: item)


def _known(document: Any, keys: tuple[str, ...], where: str) -> None:
    if not isinstance(document, dict):
        raise ConfigError("not a mapping", where=where)
    for key in document:
        if key not in keys:
            text = f"unknown key {key!r}{did_you_mean(str(key), keys)}"
            raise ConfigError(text, where=where, expected=", ".join(keys))


def _number(
    row: dict[str, Any], key: str, default: float, where: str, least: float = 0, most: float = 1e15
) -> float:
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        place = f"{where}.{key}" if where.endswith("]") else f"{where}: {key}"
        raise ConfigError(
            f"{value!r} is out of range", where=place, expected=f"a number from {least:g} to {most:g}"
        )
    return float(value)


def _count(value: Any, where: str) -> int:
    """Return a number of jobs; a key of JSON is a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**9:
        raise ConfigError(f"{value!r} is not valid as a number of jobs", where=where, expected="1 or more")
    return value


def _seconds(value: Any, where: str) -> float:
    found = _placed(lambda: parse_duration(value, where), where)
    if not (isfinite(found) and found > 0):
        raise ConfigError(f"{value!r} is out of range", where=where, expected="a time above 0")
    return float(found)


def _placed(read: Any, where: str) -> Any:
    try:
        return read()
    except SimschedError as error:
        raise ConfigError(error.message, where=where, expected=error.expected) from None


def _numbers(value: Any, where: str) -> list[float]:
    """Return the numbers of a list, or of a text with blanks between them."""
    given = value.split() if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        return [float(item) for item in given]
    except OverflowError:
        raise ConfigError("a number is too large", where=where, expected="less than 1e308") from None
    except (TypeError, ValueError):
        raise ConfigError(f"{value!r} has a part that is not a number", where=where) from None


def _rates(value: Any, number: int, where: str) -> tuple[float, ...]:
    if value is None:
        return (1.0,) * number
    found = _numbers(value, where)
    if len(found) != number or not all(0 <= rate < 1e9 for rate in found) or not sum(found) > 0:
        raise ConfigError(
            f"{len(found)} values are given that are not valid as rates",
            where=where,
            expected=f"{number} numbers of 0 or more, at least one above 0",
        )
    return tuple(found)


def _correlation(value: Any, where: str) -> tuple[float, float, float]:
    if value is None:
        return (0.0, 0.0, 0.0)
    found = _numbers(value, where)
    if len(found) != 3 or not all(-1 <= rank <= 1 for rank in found):
        expected = "three numbers from -1 to 1: size and limit, size and run time, limit and run time"
        raise ConfigError(f"{value!r} is out of range", where=where, expected=expected)
    return found[0], found[1], found[2]


# --- writing


def model_document(model: LogModel, description: str = "") -> dict[str, Any]:
    """Return a model as the mapping that `model_from_dict` reads."""
    found: dict[str, Any] = {"name": model.name}
    if description:
        found["description"] = description
    if "UnixStartTime" in model.header:
        zone = model.header["TimeZoneString"]
        found |= {"start": Clock(float(model.header["UnixStartTime"]), zone).text(0), "zone": zone}
    found |= {"span": format_duration(round(model.span)), "growth": _short(model.growth)}
    if model.population:
        found["users"] = model.population
    if "MaxProcs" in model.header:
        found["processors"] = int(model.header["MaxProcs"])
    return {**found, "classes": [_class_document(one) for one in model.classes]}


def _class_document(one: JobClass) -> dict[str, Any]:
    found: dict[str, Any] = {"name": one.name, "factor": _short(one.factor), "batches": _short(one.batches)}
    if one.users:
        found |= {"users": one.users, "skew": _short(one.skew)}
    found |= {
        "hours": _text(one.hours),
        "weekdays": _text(one.weekdays),
        "variation": _short(one.variation),
        "jobs": _weighted(list(map(str, one.jobs.values)), one.jobs.weights),
        "gap": str(one.gap),
        "repeat": _short(one.repeat),
        "alike": _short(one.alike),
        "requests": _weighted([spec.to_shape() for spec in one.requests.values], one.requests.weights),
    }
    if one.limits is not None:
        found["limits"] = _weighted([format_duration(v) for v in one.limits.values], one.limits.weights)
    found |= {"runtime": str(one.runtime), "correlation": _text(one.correlation)}
    if one.memory is not None:
        found["memory"] = str(one.memory)
    if one.queues is not None:
        found["queues"] = _weighted(list(one.queues.values), one.queues.weights)
    return found


def _weighted(names: list[str], weights: tuple[float, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, weight in zip(names, weights, strict=True):
        found[name] = found.get(name, 0) + int(weight)
    return found


def _text(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def _short(value: float) -> float:
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def model_text(model: LogModel, description: str = "") -> str:
    """Return a model as the YAML text of its file."""
    from simsched.formats.text.yaml_text import to_yaml

    return to_yaml(model_document(model, description))
