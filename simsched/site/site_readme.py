"""The README of an imported site: its contents, assumptions and omissions, file by file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from simsched.site.preemption_tables import PREEMPTION, RESERVATIONS, preemption_rows, reservation_rows
from simsched.site.site_tables import (
    FACTORS,
    LIMITS,
    NODES,
    QUEUES,
    limit_rows,
    node_rows,
    notes_by_kind,
    priority_rows,
    queue_rows,
)
from simsched.text_table import clip_end, markdown_table
from simsched.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.site.site import Site

HOSTS = 80
"""The most characters of a hostlist in a table; the file of the machine has all hosts."""

USE = """\
## Use

    simsched feasible --site {folder} 'slot=4/core=8'
    simsched run --site {folder} {log} -o run
    simsched report run

Correct `{cluster}` and `queues.toml` where they are wrong. An import into this folder does not replace
a file that was edited."""


def readme(site: Site, cluster: str, folder: str) -> str:
    """Return the text of the README; `cluster` is the name of the file of the machine."""
    return "\n\n".join(_parts(site, cluster, folder)) + "\n"


def _parts(site: Site, cluster: str, folder: str) -> Iterator[str]:
    yield f"# Site {visible(site.name)}"
    if site.sources:
        sources = [(source.name, source.sha256[:16]) for source in site.sources]
        yield f"Imported by simsched from {site.format or 'these files'}."
        yield markdown_table(("file", "SHA-256 begins with"), sources)
    yield "## Nodes"
    yield f"The machine is in `{cluster}`. Partitions and features are properties of its nodes."
    rows = [(count, clip_end(hosts, HOSTS), *rest) for count, hosts, *rest in node_rows(site)]
    yield markdown_table(NODES, rows)
    yield "## Queues"
    queues = queue_rows(site)
    if queues:
        yield "The queues are in `queues.toml`, which has the layout of `--config` and the words of RFC 33."
        yield markdown_table(QUEUES, queues)
    else:
        yield "The files describe no queues, so `queues.toml` is empty."
    limits = limit_rows(site)
    if limits:
        yield "## Limits"
        yield "The tables `[[limits]]` of `queues.toml` hold or reject jobs that are over a limit."
        yield markdown_table(LIMITS, limits)
    yield from _kept_for_some(site)
    rows = priority_rows(site)
    if rows:
        yield "## Priority"
        yield "Jobs are ordered by `multifactor`; the table `priority` of `queues.toml` has its factors."
        yield markdown_table(FACTORS, rows)
    found = notes_by_kind(site)
    for heading, notes in found.items():
        yield f"## {heading}"
        yield "\n".join(f"- {visible(text)}".replace("\n", " ") for text in notes)
    if not found:
        yield "Nothing was assumed or left out."
    log = shlex.quote(site.logs[0]) if site.logs else "LOG"
    yield USE.format(folder=shlex.quote(folder), cluster=cluster, log=log)


def _kept_for_some(site: Site) -> Iterator[str]:
    """Yield the sections on preemption and advance reservations, where the site has them."""
    rows = preemption_rows(site)
    if rows:
        yield "## Preemption"
        yield "The table `preemption` of `queues.toml` says which jobs preempt which."
        yield markdown_table(PREEMPTION, rows)
    rows = reservation_rows(site)
    if rows:
        yield "## Reservations"
        yield "The tables `[[reservations]]` of `queues.toml` keep nodes. A job names its reservation."
        yield markdown_table(RESERVATIONS, [tuple(clip_end(cell, HOSTS) for cell in row) for row in rows])
