"""``flux-simsched``: questions about the Flux instance that one is in, answered by simsched.  Experimental.

Flux runs it as ``flux simsched``.  It asks the instance for its resources (``flux resource R``), and hands
them to a verb of simsched as the cluster.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from simsched.cli import main as simsched
from simsched.errors import RunError, SimschedError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = {
    "feasible": (["feasible"], "whether jobspecs or shapes can ever run on this instance"),
    "match": (["match"], "what jobspecs or shapes would get on the idle instance"),
    "show": (["cluster", "show"], "the resources of this instance"),
}
"""Verb → the verb of simsched that gets the cluster first, and a sentence."""
USAGE = """usage: flux-simsched VERB [--R FILE] [ARGUMENTS…]

{verbs}
  --R FILE   take the resources from a file, not from `flux resource R`

The arguments are those of the verb of simsched, without the cluster. A scheduler with simsched's matcher:
  flux module load sched-fifo pool-class=simsched.flux:Pool
"""
SECONDS = 60
"""How long the instance may take to answer."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status: that of the verb, or 2 for a bad input."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        verbs = "\n".join(f"  {name:<10} {text}" for name, (_, text) in VERBS.items())
        (sys.stdout if arguments else sys.stderr).write(USAGE.format(verbs=verbs))
        return 0 if arguments else 2
    verb, *rest = arguments
    try:
        ours = _known(verb)
        given, rest = _file_of(rest)
        if given is not None:
            return simsched([*ours, given, *rest])
        with TemporaryDirectory() as folder:
            file = Path(folder) / "resource.R.json"
            file.write_bytes(instance_resources())
            return simsched([*ours, str(file), *rest])
    except SimschedError as error:
        sys.stderr.write(f"flux-simsched: {error}\n")
        return 2


def instance_resources() -> bytes:
    """Return R of the Flux instance; RunError if there is none, or it does not answer."""
    try:
        done = subprocess.run(
            ["flux", "resource", "R"],  # noqa: S607 (the user's own Flux)
            capture_output=True, check=False, timeout=SECONDS,
        )  # fmt: skip
    except FileNotFoundError:
        raise RunError("there is no command flux", expected="a Flux instance, or --R FILE") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"flux resource R did not answer within {SECONDS} s") from None
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
        raise RunError(f"flux resource R failed: {text}", expected="a Flux instance, or --R FILE")
    return done.stdout


def _known(verb: str) -> list[str]:
    """Return the verb of simsched."""
    if verb not in VERBS:
        meant = did_you_mean(verb, VERBS)
        raise SimschedError(f"unknown verb {verb!r}{meant}", expected=", ".join(VERBS))
    return VERBS[verb][0]


def _file_of(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the file of ``--R``, and the other arguments."""
    rest = list(arguments)
    if "--R" not in rest:
        return None, rest
    at = rest.index("--R")
    if at + 1 == len(rest):
        raise SimschedError("--R without a file", expected="--R FILE")
    return rest[at + 1], [*rest[:at], *rest[at + 2 :]]
