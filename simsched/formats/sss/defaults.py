"""Defaults are merged into jobs, task groups and tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.formats.text.xml_tree import Element

_BY_NAME = ("Resource", "Extension", "ResourceLimit", "Variable")
_APART = ("Requested", "Delivered", "TaskGroup", "TaskGroupDefaults", "Task", "TaskDefaults", "Environment")


def merged(own: Element, defaults: Element | None) -> Element:
    """Return the element with the properties of its defaults that it does not have itself.

    A property overrides its default, whether it is in Requested or outside; variables of the
    environment and resources override one by one; Delivered is separate from the request.

    >>> from simsched.formats.text.xml_tree import Element
    >>> job = Element("Job", (), "", (Element("Id", (), "1"),))
    >>> print(merged(job, Element("JobDefaults", (), "", (Element("User", (), "ann"),))).value("User"))
    ann
    """
    if defaults is None:
        return own
    own_keys = {_key(child) for child in _requested(own)}
    children = [
        c for c in defaults.children if c.name not in _APART and c.name != "Id" and _key(c) not in own_keys
    ]
    children += [child for child in own.children if child.name not in _APART]
    requested = _inside(own, "Requested")
    older = [child for child in _inside(defaults, "Requested") if _key(child) not in own_keys]
    children += _wrapped("Requested", (*older, *requested), own, defaults)
    delivered = _inside(own, "Delivered")
    known = {_key(child) for child in delivered}
    older = [child for child in _inside(defaults, "Delivered") if _key(child) not in known]
    children += _wrapped("Delivered", (*older, *delivered), own, defaults)
    children += _environment(own, defaults)
    for kind in ("TaskGroup", "Task"):
        children += _defaults_of(f"{kind}Defaults", own, defaults)
        children += list(own.all(kind)) or list(defaults.all(kind))
    return replace(own, children=tuple(children))


def _key(child: Element) -> tuple[str | None, ...]:
    """The key that a child overrides: its name, with the name and type of a resource, variable or limit."""
    if child.name in _BY_NAME:
        return child.name, child.attribute("name"), child.attribute("type")
    return (child.name,)


def _inside(element: Element, category: str) -> tuple[Element, ...]:
    """The properties in all elements of one category."""
    return tuple(child for part in element.all(category) for child in part.children)


def _requested(element: Element) -> Iterable[Element]:
    """Properties outside categories and in Requested."""
    return (*(c for c in element.children if c.name not in _APART), *_inside(element, "Requested"))


def _wrapped(category: str, children: tuple[Element, ...], own: Element, defaults: Element) -> list[Element]:
    """The category element with these children, or nothing."""
    model = own.first(category) or defaults.first(category)
    return [replace(model, children=children)] if model is not None and children else []


def _environment(own: Element, defaults: Element) -> list[Element]:
    """The variables of both; those of the element win."""
    mine, theirs = own.first("Environment"), defaults.first("Environment")
    if mine is None or theirs is None:
        return [part for part in (mine or theirs,) if part is not None]
    own_keys = {_key(child) for child in mine.children}
    older = tuple(child for child in theirs.children if _key(child) not in own_keys)
    return [replace(mine, children=older + mine.children)]


def _defaults_of(name: str, own: Element, defaults: Element) -> list[Element]:
    """The defaults for inner elements: those of the element over those of its own defaults."""
    mine, theirs = own.first(name), defaults.first(name)
    if mine is None:
        return [theirs] if theirs is not None else []
    return [merged(mine, theirs)]
