"""Requests as ``feasible`` and ``match`` take them from the command line, and answers about them in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simsched.errors import ConfigError, FormatError, SimschedError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.match.outcome import Outcome

    Answers: TypeAlias = Sequence[tuple["Asked", Outcome]]

STANDS_FIRST = "would stand first, alone"
FILE_ENDINGS = (".yaml", ".yml", ".json", ".jsonl", ".xml", ".gz")
PATH_BEGINNINGS = ("/", "./", "../", "~/")  # no shape begins with a slash or a dot


class Asked(NamedTuple):
    """One request of the command line and how it is called in the answer."""

    label: str
    jobspec: Jobspec


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that both verbs have: the cluster, the requests, a constraint for all."""
    parser.usage = "%(prog)s [-h] [options] CLUSTER REQUEST [REQUEST ...]"
    parser.add_argument(
        "words",
        metavar="CLUSTER REQUEST",
        nargs="+",
        help="a cluster's file or bundled name; then shapes (RFC 46), files of jobspecs or of shapes (one "
        "per line), or - for standard input",
    )
    parser.add_argument(
        "--constraint", metavar="C", help="RFC 35 constraint for every request, and-ed to its own"
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="take jobspecs with tasks that name no slot, or one that is not there, with a warning",
    )


def split(words: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """Split ``CLUSTER REQUEST…`` into both."""
    if len(words) < 2:
        raise ConfigError("no request is given", where=words[0], expected="CLUSTER REQUEST…")
    return [words[0]], words[1:]


def read_requests(
    arguments: Sequence[str], constraint: str | None, *, lenient: bool = False
) -> Iterator[Asked]:
    """Yield the requests of the command line: files in their order, shapes as they are.

    `lenient` takes tasks that name no slot with a warning.

    Raises
    ------
    SimschedError
        naming the argument, for what is neither.
    """
    for argument in arguments:
        for asked in _from_file(argument, lenient=lenient) if _is_file(argument) else [_from_shape(argument)]:
            yield asked._replace(jobspec=_constrained(asked.jobspec, constraint))


def _is_file(argument: str) -> bool:
    try:
        written_as_file = argument.endswith(FILE_ENDINGS) or argument.startswith(PATH_BEGINNINGS)
        return argument == "-" or written_as_file or _exists(Path(argument))
    except (OSError, ValueError):  # a shape may be longer than any file name
        return False


def _exists(path: Path) -> bool:
    """Whether this is a file or a pipe (a directory may have the name of a shape)."""
    return path.exists() and not path.is_dir()


def _from_file(argument: str, *, lenient: bool) -> list[Asked]:
    from simsched.cli.convert_job_objects import tell
    from simsched.formats.request_files import jobspecs_of
    from simsched.formats.text.documents import name_of, read_text
    from simsched.formats.text.sniffing import looks_like_shapes, read_shapes

    text, where = read_text(argument), name_of(argument)
    if not text.strip():
        raise ConfigError(
            "there is no request in it", where=where, expected="jobspecs, or shapes one per line"
        )
    if looks_like_shapes(text):
        return [_from_shape(shape, place) for shape, place in read_shapes(text, where)]
    jobspecs = jobspecs_of(text, where, warn=tell, lenient=tell if lenient else None)
    name = "stdin" if argument == "-" else argument
    if not jobspecs:
        raise ConfigError("there is no jobspec in this file", where=name)
    if len(jobspecs) == 1:
        return [Asked(name, jobspecs[0])]
    return [Asked(f"{name}[{number}]", jobspec) for number, jobspec in enumerate(jobspecs)]


def _from_shape(text: str, place: str | None = None) -> Asked:
    from simsched.formats.jobspec.jobspec import Jobspec

    try:
        return Asked(text, Jobspec.from_shape(text))
    except FormatError as error:
        raise error.at(place) if place else error from None


def _constrained(jobspec: Jobspec, text: str | None) -> Jobspec:
    if text is None:
        return jobspec
    from simsched.formats.rfc.constraint import to_json
    from simsched.formats.rfc.constraint_text import parse_constraint

    more, own = to_json(parse_constraint(text)), jobspec.constraint
    return jobspec.with_system(constraints=more if own is None else {"and": [to_json(own), more]})


def about(asked: Asked, question: Callable[[Jobspec], Outcome]) -> Outcome:
    """Ask about one request; an error says about which."""
    try:
        return question(asked.jobspec)
    except SimschedError as error:
        raise error.at(asked.label) from None


#: status of a no → the word that people read
WORDS = {"busy": "later", "infeasible": "never", "undecided": "undecided"}


def as_text(asked: Asked, outcome: Outcome, yes: str) -> str:
    """Return an answer as text, a no with its reasons."""
    if outcome:
        return f"{asked.label}: {yes}"
    reasons = str(outcome.reasons).splitlines()
    return "\n".join([f"{asked.label}: {WORDS[outcome.status]}", *(f"  {line}" for line in reasons)])


def as_json(asked: Asked, outcome: Outcome, yes: str) -> dict[str, Any]:
    """Return an answer as data, a no with its reasons."""
    answer: dict[str, Any] = {"request": asked.label, "answer": yes if outcome else WORDS[outcome.status]}
    if not outcome:
        answer["reasons"] = outcome.reasons.to_dict()
    return answer


def tell_clusters(refused: Iterable[Asked], hint: str) -> None:
    """Say which requests that came to nothing are names of clusters: they may stand in the wrong place."""
    from simsched.bundled import bundled

    clusters = bundled("clusters")
    for name in dict.fromkeys(asked.label for asked in refused if asked.label in clusters):
        meant = hint.format(name)
        sys.stderr.write(f"note: {name} was read as a request; the bundled cluster of that name {meant}\n")
