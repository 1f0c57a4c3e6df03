"""Edits of a cluster as text, for study files: ``resize(node[0-15], 32)`` and so on.

===============================  ==================================================
``resize(WHERE, COUNT)``         COUNT targets in a group of equal ones
``add(HOSTS, LIKE)``             new targets with the resources of the host LIKE
``remove(WHERE)``                remove these targets
``restrict(WHERE)``              keep only these targets
``status(WHERE, STATUS)``        up, down or drained
``property(WHERE, NAME)``        add a property; ``-NAME`` removes it
``units(WHERE, TYPE, COUNT)``    COUNT units of a type in each target: gpus, cores
``set(PATH, VALUE)``             set a value of a recipe: ``set(groups[0].count, 64)``
===============================  ==================================================

WHERE is a hostlist (``node[0-3]``), ``all``, or a constraint of RFC 35 in which every term has
its operator: ``properties:gpu``, ``ranks:0-15``, ``not properties:debug``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.calls import parse_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.graph.cluster import Cluster
    from simsched.graph.edit import Where

    Edit = Callable[[Cluster, list[str]], Cluster]


def apply_edits(cluster: Cluster, edits: Iterable[str]) -> Cluster:
    """Return the cluster after the edits, in order.

    Raises
    ------
    ConfigError
        for an unknown edit or a wrong argument; the message names the edit.
    """
    for text in edits:
        cluster = _apply(cluster, text)
    return cluster


def _apply(cluster: Cluster, text: str) -> Cluster:
    name, arguments = parsed_edit(text)
    try:
        return EDITS[name][1](cluster, arguments)
    except SimschedError as error:
        where = f"{text}: {error.where}" if error.where else text
        raise ConfigError(error.message, where=where, expected=error.expected) from None


def parsed_edit(text: str) -> tuple[str, list[str]]:
    """Return the name and the arguments of an edit; ConfigError for an unknown one.

    >>> parsed_edit("resize(node[0-3,8], 6)")
    ('resize', ['node[0-3,8]', '6'])
    """
    call = parse_call(text)
    if call is None or (call.name not in EDITS and call.name != "set"):
        raise ConfigError(f"unknown edit {text!r}", expected=", ".join([*EDITS, "set"]))
    return call.name, call.arguments(2 if call.name == "set" else EDITS[call.name][0])


def _where(text: str) -> Where:
    from simsched.formats.rfc.constraint import ANY, parse_constraint
    from simsched.formats.rfc.idset import Idset

    if text == "all":
        return ANY
    if text.startswith("ranks:") and " " not in text:
        return Idset.parse(text.removeprefix("ranks:"))
    return parse_constraint(text) if ":" in text else text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ConfigError(f"{text!r} is not a number of targets", expected="a whole number")
    return int(text)


def _resize(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import scale_group

    return scale_group(cluster, _where(given[0]), _count(given[1]))


def _add(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import add_nodes

    return add_nodes(cluster, given[0], like=given[1])


def _remove(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import remove_nodes

    return remove_nodes(cluster, _where(given[0]))


def _restrict(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import restrict

    return restrict(cluster, _where(given[0]))


def _status(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import set_status

    return set_status(cluster, _where(given[0]), given[1])


def _property(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import add_properties, drop_properties

    where = _where(given[0])
    if given[1].startswith("-"):
        return drop_properties(cluster, where, given[1][1:])
    return add_properties(cluster, where, given[1])


def _units(cluster: Cluster, given: list[str]) -> Cluster:
    from simsched.graph.edit import set_units

    return set_units(cluster, _where(given[0]), given[1], _count(given[2]))


#: Name → (number of arguments, the edit).  ``set`` is not among them: it changes a recipe, before the
#: cluster is built.
EDITS: dict[str, tuple[int, Edit]] = {
    "resize": (2, _resize),
    "add": (2, _add),
    "remove": (1, _remove),
    "restrict": (1, _restrict),
    "status": (2, _status),
    "property": (2, _property),
    "units": (3, _units),
}


# --- edits of a recipe ---------------------------------------------------------------


def recipe_edits(edits: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the edits that change a recipe, and the others."""
    every = tuple(edits)
    return (
        tuple(e for e in every if parsed_edit(e)[0] == "set"),
        tuple(e for e in every if parsed_edit(e)[0] != "set"),
    )


def edit_recipe(document: Any, edits: Iterable[str], where: str | None = None) -> Any:
    """Return a recipe after its ``set`` edits.

    Raises
    ------
    ConfigError
        if the document is not a recipe, or has no value at the path.

    >>> edit_recipe({"groups": [{"name": "n", "count": 4}]}, ["set(groups[0].count, 8)"])
    {'groups': [{'name': 'n', 'count': 8}]}
    """
    from copy import deepcopy

    from simsched.formats.cluster.recipe import is_recipe
    from simsched.formats.text.documents import load_document
    from simsched.formats.text.excerpts import parse_path

    if not is_recipe(document):
        raise ConfigError("only the values of a recipe can be set", where=where, expected="a cluster recipe")
    made = deepcopy(document)
    for text in edits:
        _, (path, value) = parsed_edit(text)
        *way, last = parse_path(path)
        place = made
        try:
            for step in way:
                place = place[step]
            place[last] = load_document(value, text)
        except (KeyError, IndexError, TypeError):
            raise ConfigError(f"the recipe has no {path}", where=text) from None
    return made
