"""The command line: a table of verbs, and the one place where errors become exit statuses.

Each verb is a module of this package with a function ``register(subparsers)``.  It adds parsers and gives
each of them ``set_defaults(run=function)``, where ``function(args) -> int`` returns the exit status
(``None`` counts as 0).  Only the module of the requested verb is imported, so ``simsched --help`` and
``simsched shape`` never import NumPy or pandas.  A module is named after its verb; ``convert`` holds `shape`,
too, ``report`` holds `plot`, ``tutorial`` holds `demo`, and ``searches`` holds `size`, `headroom` and
`calibrate`.

`options` has the options that verbs share, `support` the mechanics.  May import every other package.

Exit status: 0 done or yes, 1 no, 2 the input is wrong, 130 interrupted (128 plus the number of another
signal: 143 for SIGTERM, 129 for SIGHUP), 141 the reader of the output is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from simsched.cli.support.messages import (
    QUIET,
    encoding_text,
    notes_of_inputs,
    others_of,
    printable,
    text_of,
    trace_of,
    warn,
)
from simsched.cli.support.output import Visible, adapt
from simsched.cli.support.parser import Parser, UsageError, parse
from simsched.cli.support.signals import end_undisturbed, interruptible, status_of
from simsched.errors import ConfigError, SimschedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType


#: Verb → (module of this package, one line of help), in the order of ``simsched --help``.
VERBS: dict[str, tuple[str, str]] = {
    "shape": ("convert", "expand an RFC 46 shape into the resources of a jobspec"),
    "validate": ("validate", "check jobspecs, clusters and workloads; print every fault with its place"),
    "convert": ("convert", "convert requests between jobspec, shape, Job Object and constraint formats"),
    "feasible": ("feasible", "check whether a cluster could ever run a request, and why not"),
    "check": ("check", "check whether the files of a site agree: machine, queues, storage"),
    "match": ("match", "print the allocation that each request would get, as R"),
    "run": ("run", "simulate a workload on a cluster under a queue policy"),
    "forecast": ("forecast", "predict when each waiting job would start"),
    "report": ("report", "print tables and metrics of a run, or compare several"),
    "plot": ("report", "draw a figure of a run"),
    "why": ("why", "print why a job of a run waited, or where all jobs waited"),
    "export": ("export", "write a run in the format of another program"),
    "sweep": ("sweep", "perform the runs of a study over machines, loads, policies and seeds"),
    "size": ("searches", "find the smallest machine that meets a target"),
    "calibrate": ("searches", "find the settings under which simulated waits are nearest to those of a log"),
    "headroom": ("searches", "find the highest load under which a machine meets a target"),
    "policies": (
        "policies",
        "list orders, factors, policies and plug-ins, each with a sentence and its source",
    ),
    "schema": ("schema", "print the JSON Schema of a document"),
    "cluster": ("cluster", "show, make, convert, compare and list clusters"),
    "site": ("site", "import the machine and the queues of a centre from its own files"),
    "workload": ("workload", "show, make, convert, deliver and list workloads"),
    "demo": ("tutorial", "run a small study in under a minute"),
    "tutorial": ("tutorial", "play the first five minutes on bundled inputs"),
    "completion": ("completion", "print the completion script of a shell"),
}

START = """\
simsched: a simulated scheduler and matching engine for Flux-style HPC clusters

  simsched feasible tiny 'slot=2/[core=4;gpu]'    can this job ever run here?
  simsched match tiny 'slot=2/node'               what would it get?
  simsched run flat240 month -o month             how long do jobs wait?
  simsched report month                           the figures of that run
  simsched tutorial                               these and more, one after another

`simsched --help` lists all verbs; `simsched cluster list` and `simsched workload list` the bundled inputs.
"""
"""What `simsched` alone prints, on standard error."""

DEBUG = "SIMSCHED_DEBUG"
"""The environment variable that shows the traceback of an unexpected exception."""

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""The variable that keeps NumPy's linear algebra from starting a thread per core; a user's value is kept."""

#: Argument that names an input → its name in messages.
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
    "trace": "--for",
    "like": "--like",
    "left": "A",
    "right": "B",
    "file": "FILE",
    "files": "FILE",
    "paths": "FILE",
}
STDIN = ("-", "/dev/stdin")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of the system when the disk is full or broken."""

EXIT_BAD_INPUT = 2
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; errors of inputs never escape as exceptions."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_missing_streams()
    adapt(sys.stdout, sys.stderr)
    if argv is None:
        _own_process()
    try:
        with (
            contextlib.redirect_stdout(Visible(sys.stdout)),
            interruptible(lasting=argv is None),
            notes_of_inputs(),
        ):
            status = _run(arguments)
            sys.stdout.flush()
    except UsageError as error:
        sys.stderr.write(f"{printable(str(error), sys.stderr)}\n")
        return EXIT_BAD_INPUT
    except BrokenPipeError:  # such as `simsched … | head`
        _silence_stdout()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt as stop:
        return status_of(stop)
    except UnicodeEncodeError as error:
        return _fail(encoding_text(error))
    except (SimschedError, MemoryError, RecursionError) as error:
        return _fail(text_of(error) + others_of(error) + trace_of(error))
    except OSError as error:
        if error.filename is None and error.errno in _FULL:  # all other outputs have a name
            _silence_stdout()
            return _fail(f"standard output: cannot be written: {error.strerror}")
        return _fail(text_of(error))
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        kind = type(error).__name__
        return _fail(f"internal error: {kind}: {error}; please report it ({DEBUG}=1 shows the traceback)")
    if argv is None:
        gc.freeze()  # the process ends, so the last collections need not visit the objects of the run
        end_undisturbed()
    return status


def _own_process() -> None:
    """Set what a process that belongs to us has for itself: threads of NumPy, and warnings."""
    os.environ.setdefault(*ONE_THREAD)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # our checks report the values that NumPy would warn of


def _run(arguments: list[str]) -> int:
    if not arguments:
        sys.stderr.write(START)
        return EXIT_BAD_INPUT
    if arguments[0] == "help":  # as git and many others have it
        arguments = [*arguments[1:], "--help"]
    parser = build_parser(_verb_of(arguments))
    try:
        args = parse(parser, arguments)
    except SystemExit as stop:  # argparse has printed the help
        return stop.code if isinstance(stop.code, int) else EXIT_BAD_INPUT
    function: Callable[[argparse.Namespace], int | None] | None = getattr(args, "run", None)
    if function is None:
        parser.print_help(sys.stderr)
        return EXIT_BAD_INPUT
    _refuse_two_stdins(args)
    quiet = QUIET.set(bool(getattr(args, "quiet", False)))
    try:
        status = function(args) or 0
    finally:
        QUIET.reset(quiet)
    for option in args.ignored():
        warn(f"{option} was not used: it does not go with the other options")
    return status


def _refuse_two_stdins(args: argparse.Namespace) -> None:
    """Raise ConfigError if several arguments are standard input, which the second would find empty."""
    named: list[str] = []
    for name, word in READ.items():
        given = vars(args).get(name)
        named += [word for value in (given if isinstance(given, list) else [given]) if value in STDIN]
    if len(named) > 1:
        where = " and ".join(dict.fromkeys(named))
        message = f"standard input is given {len(named)} times but can be read only once"
        raise ConfigError(message, where=where, expected="a file for all but one of them")


def build_parser(*verbs: str | None) -> Parser:
    """Return the parser with the arguments of `verbs`; every other verb has only its line of help."""
    parser = Parser(
        prog="simsched",
        description="A simulated scheduler and matching engine for Flux-style HPC clusters.",
        epilog="`simsched VERB --help` explains a verb.",
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="print the version and exit")
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
    """Import a module of verbs.

    Raises
    ------
    SimschedError
        if the module or one of its libraries is not installed.
    """
    try:
        return import_module(f"simsched.cli.{module}")
    except ModuleNotFoundError as error:
        verbs = ", ".join(verb for verb, (home, _) in VERBS.items() if home == module)
        raise SimschedError(f"{verbs}: not installed (there is no module {error.name!r})") from error


class _Version(argparse.Action):
    """Prints the version, which is looked up only here since importlib.metadata is slow to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from simsched import __version__
        from simsched._version import kernel_is_compiled

        how = (
            "compiled" if kernel_is_compiled() else "interpreted: without a C compiler, long runs are slower"
        )
        print(f"simsched {__version__} (kernel {how})")
        parser.exit()


def _verb_of(arguments: Sequence[str]) -> str | None:
    """Return the verb of the arguments; None if none of them is known."""
    first = next((argument for argument in arguments if not argument.startswith("-")), None)
    return first if first in VERBS else None


def _fail(message: str) -> int:
    stream = sys.stderr
    with contextlib.suppress(OSError):  # the terminal may be gone
        stream.write(f"simsched: error: {printable(message, stream)}\n")
    return EXIT_BAD_INPUT


def _open_missing_streams() -> None:
    """Open an empty stream for each standard stream that was closed when the process started."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 (pathlib is slow to import)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _silence_stdout() -> None:
    """Redirect stdout to nothing, so that the last flush of the interpreter does not fail."""
    with contextlib.suppress(OSError, ValueError):  # stdout may be a buffer without a file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
