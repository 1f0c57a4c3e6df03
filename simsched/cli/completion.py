"""``simsched completion``: completion scripts for bash, zsh and tcsh, made by shtab."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from simsched.cli import Subparsers

SHELLS = ("bash", "zsh", "tcsh")


def register(subparsers: Subparsers) -> None:
    """Add the verb ``completion``."""
    parser = subparsers.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print a completion script; for bash: source <(simsched completion bash)",
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=completion)


def completion(args: argparse.Namespace) -> int:
    """Print the script of ``args.shell``; verbs that this installation lacks are left out."""
    import shtab

    # a verb that knows all verbs: their table names this module, so it is asked only when this runs
    from simsched.cli import build_parser

    print(shtab.complete(build_parser(*_installed_verbs()), shell=args.shell))
    return 0


def _installed_verbs() -> list[str]:
    from simsched.cli import VERBS, load_verbs
    from simsched.errors import SimschedError

    found = []
    for verb, (module, _) in VERBS.items():
        try:
            load_verbs(module)
        except SimschedError:
            continue
        found.append(verb)
    return found
