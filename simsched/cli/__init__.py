"""The command line: a table of verbs, and the one place where errors become exit statuses.

Each verb lives in a module of this package that has ``register(subparsers)``: it adds its
parsers and gives each of them ``set_defaults(run=function)``, where ``function(args) -> int``
returns the exit status (``None`` counts as 0).  Only the module of the verb that was asked for
is imported, so ``simsched --help`` and ``simsched shape`` never pay for NumPy or pandas.

Exit status: 0 done or yes, 1 no, 2 the input is wrong, 130 interrupted (128 and the number of
another signal: 143 for SIGTERM, 129 for SIGHUP), 141 the reader of our output went away.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from simsched.cli.support.messages import encoding_text, printable, text_of
from simsched.cli.support.output import Visible, adapt
from simsched.cli.support.parser import Parser, UsageError, parse
from simsched.cli.support.signals import interruptible, status_of
from simsched.errors import ConfigError, SimschedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    Subparsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

#: Verb → (module of this package, one line of help), in the order of ``simsched --help``.
VERBS: dict[str, tuple[str, str]] = {
    "shape": ("convert", "expand an RFC 46 shape into jobspec resources"),
    "validate": ("validate", "check jobspecs, shapes, constraints, R and JGF; every fault with its place"),
    "convert": ("convert", "turn one job format into another"),
    "feasible": ("feasible", "could this request ever run on this cluster, and if not, why"),
    "match": ("match", "what would these requests get, one R each"),
    "run": ("run", "simulate a workload on a cluster under a queue policy"),
    "forecast": ("forecast", "when would each waiting job start, as of a time"),
    "report": ("report", "tables and metrics of one run, or of several compared"),
    "plot": ("report", "pictures of a run"),
    "sweep": ("sweep", "perform the runs of a study: many machines, loads, policies, seeds"),
    "size": ("size", "the smallest machine that meets a target"),
    "headroom": ("size", "how much more load a machine takes before a target breaks"),
    "cluster": ("cluster", "show, make, convert, compare and list clusters"),
    "workload": ("workload", "show, make, convert and list workloads"),
    "demo": ("demo", "a real study in under a minute"),
    "completion": ("completion", "print the completion script of a shell"),
}

DEBUG = "SIMSCHED_DEBUG"
"""The environment variable that lets an unforeseen exception out with its traceback."""

#: Arguments of verbs that name what is read → what people call them.
READ = {
    "cluster": "CLUSTER",
    "clusters": "--cluster",
    "words": "CLUSTER REQUEST",
    "running": "--running",
    "workload": "WORKLOAD",
    "config": "--config",
    "outages": "--outages",
    "resume": "--resume",
    "details": "--details",
    "left": "A",
    "right": "B",
    "file": "FILE",
    "files": "FILE",
}
STDIN = ("-", "/dev/stdin")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What the system says where nothing more can be written."""

EXIT_BAD_INPUT = 2
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; no exception that an input causes gets out."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_missing_streams()
    adapt(sys.stdout, sys.stderr)
    if argv is None and not sys.warnoptions:  # this process is ours alone
        warnings.simplefilter("ignore")  # what NumPy warns of is found, and said in our words, by our checks
    try:
        with contextlib.redirect_stdout(Visible(sys.stdout)), interruptible(lasting=argv is None):
            status = _run(arguments)
            sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt as stop:
        return status_of(stop)
    except UnicodeEncodeError as error:
        return _fail(encoding_text(error))
    except (SimschedError, MemoryError, RecursionError) as error:
        return _fail(text_of(error))
    except OSError as error:
        if error.filename is None and error.errno in _FULL:  # every other output says its name
            _silence_stdout()
            return _fail(f"standard output: cannot be written: {error.strerror}")
        return _fail(text_of(error))
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        kind = type(error).__name__
        return _fail(f"internal error: {kind}: {error}; please report it ({DEBUG}=1 shows where it happened)")
    return status


def _run(arguments: list[str]) -> int:
    parser = build_parser(_verb_of(arguments))
    try:
        args = parse(parser, arguments)
    except UsageError as error:
        sys.stderr.write(f"{printable(str(error), sys.stderr)}\n")
        return EXIT_BAD_INPUT
    except SystemExit as stop:  # argparse has printed the help
        return stop.code if isinstance(stop.code, int) else EXIT_BAD_INPUT
    function: Callable[[argparse.Namespace], int | None] | None = getattr(args, "run", None)
    if function is None:
        parser.print_help(sys.stderr)
        return EXIT_BAD_INPUT
    _refuse_two_stdins(args)
    return function(args) or 0


def _refuse_two_stdins(args: argparse.Namespace) -> None:
    """Raise ConfigError if several arguments are standard input: the second would find it empty."""
    named: list[str] = []
    for name, word in READ.items():
        given = getattr(args, name, None)
        named += [word for value in (given if isinstance(given, list) else [given]) if value in STDIN]
    if len(named) > 1:
        told = " and ".join(dict.fromkeys(named))
        message = f"standard input is given {len(named)} times and can be read once"
        raise ConfigError(message, where=told, expected="a file for all but one")


def build_parser(*verbs: str | None) -> Parser:
    """Build the parser in which `verbs` have their own arguments and every other verb only its help line."""
    parser = Parser(
        prog="simsched",
        description="A simulated scheduler and matching engine for Flux-style HPC clusters.",
        epilog="`simsched VERB --help` explains one verb.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    wanted = {VERBS[verb][0] for verb in verbs if verb is not None}
    registered: set[str] = set()
    for verb, (module, summary) in VERBS.items():
        if module not in wanted:
            subparsers.add_parser(verb, help=summary)
        elif module not in registered:
            registered.add(module)
            load_verbs(module).register(subparsers)
    return parser


def load_verbs(module: str) -> ModuleType:
    """Import the module of this package that holds some verbs.

    Raises
    ------
    SimschedError
        if this installation lacks that module or something that it needs.
    """
    try:
        return import_module(f"simsched.cli.{module}")
    except ModuleNotFoundError as error:
        verbs = ", ".join(verb for verb, (home, _) in VERBS.items() if home == module)
        raise SimschedError(f"{verbs}: not in this installation (no module named {error.name!r})") from error


class _Version(argparse.Action):
    """Print the version; looked up only when asked, since importlib.metadata is slow to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from simsched import __version__

        print(f"simsched {__version__}")
        parser.exit()


def _verb_of(arguments: Sequence[str]) -> str | None:
    """Return the verb that the arguments name, if it is one of ours."""
    first = next((argument for argument in arguments if not argument.startswith("-")), None)
    return first if first in VERBS else None


def _fail(message: str) -> int:
    stream = sys.stderr
    with contextlib.suppress(OSError):  # a terminal that is gone
        stream.write(f"simsched: error: {printable(message, stream)}\n")
    return EXIT_BAD_INPUT


def _open_missing_streams() -> None:
    """Give a process that was started with a standard stream closed an empty one in its place."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 (pathlib is slow to import)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain."""
    with contextlib.suppress(OSError, ValueError):  # stdout may be no real file (a test's buffer)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
