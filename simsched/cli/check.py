"""``simsched check``: whether the files of a site agree."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal

from simsched.cli.support.output import answer
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.check.rules import CheckResult
    from simsched.cli.support.parser import Arguments, Subparsers


class CheckFlags(Flags, frozen=True, kw_only=True):
    """Check whether the files of a site agree: machine, queues, storage.

    Check whether descriptions of one machine (R, JGF, recipes …), configurations of its queues, outages and
    storage maps agree, and print each fault with its place and code.

    files : file of any kind, name of a bundled cluster, or - for standard input; the first description of
        the machine is the measure.
    site : check also the folder of a site.
    format : text (default) or json.

    Exit status: 0 no fault, 1 some faults, 2 the input is wrong.
    """

    files: Annotated[tuple[str, ...], flag("FILE", positional=True, nargs="*")] = ()
    site: Annotated[str | None, flag("DIR")] = None
    format: Literal["text", "json"] = "text"


def register(subparsers: Subparsers) -> None:
    """Add the verb ``check``."""
    add_verb(subparsers, "check", run_check, CheckFlags, answers=["check-findings"])


def run_check(args: Arguments) -> int:
    """Print the findings; return 0 if they are notes only, else 1."""
    from simsched.check.rules import check_files

    result = check_files(args.files, args.site)
    answer(args.format, result.to_dict, lambda: _lines(result), ensure_ascii=True)
    return 0 if result else 1


def _lines(result: CheckResult) -> Iterator[str]:
    yield from map(str, result.findings)
    if result:
        yield f"no fault: {result.summary}"
        return
    counts = Counter(finding.severity for finding in result.findings)
    words = [f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in counts.items()]
    yield f"{', '.join(words)}: {result.summary}"
