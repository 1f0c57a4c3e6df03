"""A site as an argument of the Python interface: the value, or its folder."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.graph.cluster import SITE_QUEUES
from simsched.site.site import Site
from simsched.site.site_folder import load_site

if TYPE_CHECKING:
    from collections.abc import Mapping


def site_given(value: object) -> Site | None:
    """Return the site that a value is, or whose folder it is; None for a cluster."""
    if isinstance(value, Site):
        return value
    if isinstance(value, str | PathLike) and (Path(value) / SITE_QUEUES).is_file():
        return load_site(Path(value))
    return None


def rules_on(site: Site | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `RunConfig` of a run on a site; those that are given (not None) come first.

    Options of a queue policy belong to it, so that another policy does not get those of the site.
    """
    from simsched.simulation.options.run_config import from_document

    own = {name: value for name, value in given.items() if value is not None}
    if site is None:
        return own
    rules = from_document(site.config, str(site.path or site.name))
    if rules.get("queue_options") and isinstance(own.get("queue_options"), dict):
        own["queue_options"] = {**rules["queue_options"], **own["queue_options"]}
    return {**rules, **own}
