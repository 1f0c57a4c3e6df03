"""``simsched site``: import the machine and the queues of a centre, and show them."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

from simsched.cli.support.messages import note
from simsched.cli.support.output import answer, print_lines
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.text_table import clip_end, table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.site.site import Site

HOSTS = 40
"""The most characters of a hostlist in a table."""


class ImportFlags(Flags, frozen=True, kw_only=True):
    """Write the folder of a site from slurm.conf, Flux's configuration and others.

    Read the files of a centre (slurm.conf, scontrol show node, Flux's configuration, pbsnodes -a, hwloc and
    others; docs/sites.md has the list) and write a folder with the machine, the queues, and a README with all
    assumptions and omissions.  An earlier import in DIR is replaced, unless one of its files was edited.  A
    directory with any other files is never changed.

    paths : a file of the centre, or a folder of them.
    output : folder to write.
    strict : refuse lines that are not understood.
    quiet : print neither the site nor notes on its files.

    Exit status: 0 done, 2 the input is wrong.
    """

    paths: Annotated[tuple[str, ...], flag("FILE", positional=True, nargs="+")]
    output: Annotated[str, flag("DIR", "-o")]
    strict: bool = False
    quiet: bool = False


class SiteFlags(Flags, frozen=True, kw_only=True):
    """Print the nodes, the queues and the notes of a site.

    folder : folder of a site.
    format : text (default) or json.
    """

    folder: Annotated[str, flag("DIR", positional=True)]
    format: Literal["text", "json"] = "text"


def register(subparsers: Subparsers) -> None:
    """Add the verb ``site`` and its actions."""
    site = subparsers.add_parser(
        "site",
        help="import the machine and the queues of a centre from its own files",
        description="Import the machine and the queues of a centre from its own files into one folder, "
        "which --site takes, and show it.",
    )
    verbs = site.add_subparsers(title="actions", metavar="ACTION", dest="site_verb", required=True)
    add_verb(verbs, "import", run_import, ImportFlags)
    add_verb(verbs, "show", run_show, SiteFlags, answers=["site-facts"])


def run_import(args: Arguments) -> int:
    """Import a site, and print it."""
    from simsched.folders import refuse_foreign
    from simsched.site.import_site import import_site
    from simsched.site.site_folder import SITE, refuse_edited, save_site

    refuse_edited(args.output)
    replaced = refuse_foreign(args.output, SITE)
    site = import_site(*args.paths, strict=args.strict)
    path = save_site(site, args.output)
    if not args.quiet:
        print_lines(_text(site), "text")
    if replaced:
        note(f"replaced the earlier import in {path}")
    sys.stderr.write(f"written: {path}\n")
    for log in site.logs:
        note(
            f"{log} is a log of jobs; next: simsched run --site {quote(str(path))} {quote(log)} -o run",
            of_input=True,
        )
    return 0


def run_show(args: Arguments) -> int:
    """Print a site."""
    from simsched.site.site_folder import load_site
    from simsched.site.site_tables import facts

    site = load_site(args.folder)
    answer(args.format, lambda: facts(site), lambda: _text(site))
    return 0


def _text(site: Site) -> Iterator[str]:
    from simsched.site.site_tables import notes_by_kind, tables

    source = f", from {site.format}" if site.format else ""
    size, number = len(site.cluster.index), len(site.queues)
    counts = f"{size:,} node{'s' * (size != 1)}, {number:,} queue{'s' * (number != 1)}"
    yield f"{site.name}: {counts}{source}"
    right = {"Nodes": [0], "Queues": [1, 2]}
    for heading, (columns, rows) in tables(site, HOSTS).items():
        if rows:
            yield ""
            if heading not in right:
                rows = [[clip_end(cell, HOSTS) for cell in row] for row in rows]  # noqa: PLW2901
            yield from table_lines([columns, *rows], right=right.get(heading, ()))
    for heading, notes in notes_by_kind(site).items():
        yield ""
        yield f"{heading}:"
        yield from (f"  {text}" for text in notes)
