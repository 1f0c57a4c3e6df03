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
    from collections.abc import Iterable

    from simsched.graph.cluster import Cluster
    from simsched.graph.edit import Where


def apply_edits(cluster: Cluster, edits: Iterable[str]) -> Cluster:
    """Return the cluster after the edits, in order.

    Raises
    ------
    ConfigError
        for an unknown edit or a wrong argument; the message names the edit.
    """
    for text in edits:
        name, arguments = parsed_edit(text)
        try:
            cluster = _edited(cluster, name, arguments)
        except SimschedError as error:
            where = f"{text}: {error.where}" if error.where else text
            raise ConfigError(error.message, where=where, expected=error.expected) from None
    return cluster


def parsed_edit(text: str) -> tuple[str, list[str]]:
    """Return the name and the arguments of an edit; ConfigError for an unknown one.

    >>> parsed_edit("resize(node[0-3,8], 6)")
    ('resize', ['node[0-3,8]', '6'])
    """
    call = parse_call(text)
    if call is None or call.name not in EDITS:
        raise ConfigError(f"unknown edit {text!r}", expected=", ".join(EDITS))
    return call.name, call.arguments(EDITS[call.name])


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


def _edited(cluster: Cluster, name: str, given: list[str]) -> Cluster:
    from simsched.graph import edit

    if name == "add":
        return edit.add_nodes(cluster, given[0], like=given[1])
    where, *rest = _where(given[0]), *given[1:]
    match name:
        case "resize":
            return edit.scale_group(cluster, where, _count(rest[0]))
        case "remove":
            return edit.remove_nodes(cluster, where)
        case "restrict":
            return edit.restrict(cluster, where)
        case "status":
            return edit.set_status(cluster, where, rest[0])
        case "property" if rest[0].startswith("-"):
            return edit.drop_properties(cluster, where, rest[0][1:])
        case "property":
            return edit.add_properties(cluster, where, rest[0])
    return edit.set_units(cluster, where, rest[0], _count(rest[1]))


EDITS = {"resize": 2, "add": 2, "remove": 1, "restrict": 1, "status": 2, "property": 2, "units": 3, "set": 2}
"""Name → number of arguments.  ``set`` changes a recipe, before the cluster is built."""


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
