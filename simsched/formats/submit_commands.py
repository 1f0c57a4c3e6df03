"""Requests in the words of a resource manager: ``#SBATCH`` scripts, sbatch, srun and ``flux submit`` lines.

The options of sbatch(1) and flux-submit(1) that request resources become a shape; all others are noted.
A CPU of Slurm is a core here.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from simsched.errors import FormatError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.machines.slurm.node_records import property_name
from simsched.formats.machines.slurm.notation import gres_of, time_limit
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_COUNT = 10**9
_COMMAND = re.compile(
    r"[ \t]*(?:[$#>] )?(flux[ \t]+(?:mini[ \t]+)?(?:submit|run|batch|alloc|bulksubmit)|sbatch|srun|salloc)"
    r"(?=\s|\Z)"
)
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(SBATCH|[Ff][Ll][Uu][Xx]:)[ \t]+(.*)")
_MEMORY = re.compile(r"(\d{1,15})([KMGT]?)B?", re.IGNORECASE)
_MIB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}

_SLURM = {
    "N": "nodes", "n": "ntasks", "c": "cpus-per-task", "G": "gpus", "t": "time", "C": "constraint",
    "p": "partition", "J": "job-name", "A": "account", "q": "qos", "o": "output", "e": "error", "i": "input",
    "D": "chdir", "a": "array", "d": "dependency", "w": "nodelist", "x": "exclude", "L": "licenses",
    "M": "clusters", "m": "distribution", "b": "begin", "S": "core-spec", "F": "nodefile",
    "ntasks": "ntasks", "tasks-per-node": "ntasks-per-node", "gres": "gres", "mem": "mem", "time": "time",
}  # fmt: skip
_FLUX = {
    "N": "nodes", "n": "ntasks", "c": "cpus-per-task", "g": "gpus-per-task", "t": "time", "q": "partition",
    "B": "bank", "o": "setopt", "S": "setattr", "l": "label-io",
    "nslots": "ntasks", "cores-per-task": "cpus-per-task", "cores-per-slot": "cpus-per-task",
    "gpus-per-slot": "gpus-per-task", "time-limit": "time", "queue": "partition",
    "tasks-per-node": "ntasks-per-node",
}  # fmt: skip
"""Option → the name that it has here, mostly that of Slurm."""
_FLAG_WORDS = """
    exclusive hold H requeue no-requeue wait W overcommit O oversubscribe s contiguous verbose v quiet Q
    unbuffered label-io l parsable test-only spread-job no-kill k use-min-nodes dry-run watch
"""
_FLAGS = frozenset(_FLAG_WORDS.split())
"""Options without a value, or whose value follows ``=``."""


class CommandRequest(NamedTuple):
    """A request of a command or script: its label, its jobspec, and what was not used or assumed."""

    label: str
    jobspec: Jobspec
    notes: tuple[str, ...]


def is_command(text: str) -> bool:
    """Whether a text is a command that submits a job.

    >>> is_command("flux submit -n4 x"), is_command("flux=2"), is_command("srun=1/core")
    (True, False, False)
    """
    return _COMMAND.match(text) is not None


def command_requests(text: str, where: str) -> list[CommandRequest] | None:
    """Return the requests of a script with directives, or of commands, one per line; None for other texts.

    Raises
    ------
    FormatError
        for an option whose value is not valid, with its line.

    >>> found = command_requests("flux submit -n 4 -c 2 --time-limit 30 hostname", "x")
    >>> str(found[0].jobspec.to_shape()), found[0].jobspec.duration
    ('slot=4/core=2', 1800.0)
    """
    lines = list(enumerate(text.splitlines(), 1))
    directives = list(_directives(lines))
    if directives:
        word = directives[0][1].upper()
        other = [number for number, kind, _ in directives if kind.upper() != word]
        words = [
            (part, f"{where}:{number}")
            for number, kind, rest in directives
            if kind.upper() == word
            for part in _split(rest, f"{where}:{number}")
        ]
        notes = [f"{where}:{number}: a directive of another resource manager" for number in other]
        return [_request(words, where, where, notes, flux=word != "SBATCH", is_script=True)]
    commands = [
        (number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")
    ]
    if not commands or not all(is_command(line) for _, line in commands):
        return None
    found = []
    for number, line in commands:
        place = f"{where}:{number}" if len(lines) > 1 else where
        match = _COMMAND.match(line)
        assert match is not None
        words = [(part, place) for part in _split(line[match.end() :], place)]
        found.append(_request(words, line.strip(), place, [], flux=match[1].startswith("flux")))
    return found


def _directives(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, word, options) of the directives before the first command, as Slurm and Flux read them."""
    for number, line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            return
        found = _DIRECTIVE.match(line)
        if found:
            yield number, found[1], found[2]


def _split(text: str, where: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        message = f"the options cannot be read: {error}"
        raise FormatError(message, where=where, expected="matching quotation marks") from None


def _request(
    words: Sequence[tuple[str, str]],
    label: str,
    where: str,
    notes: list[str],
    *,
    flux: bool,
    is_script: bool = False,
) -> CommandRequest:
    options = _Options(notes, flux=flux)
    options.take(words, is_script=is_script)
    try:
        jobspec = Jobspec.from_shape(
            options.shape(), duration=options.seconds(), queue=options.text("partition"),
            constraint=options.constraint(), name=options.text("job-name"),
        )  # fmt: skip
    except FormatError as error:
        raise error if error.where else error.at(where) from None
    options.note_rest()
    return CommandRequest(label, jobspec, tuple(dict.fromkeys(options.notes)))


class _Options:
    """The options of one command; those that are read are taken out, and the rest is noted."""

    def __init__(self, notes: list[str], *, flux: bool) -> None:
        self.notes = notes
        self.flux = flux
        self._names = _FLUX if flux else _SLURM
        self._given: dict[str, tuple[str, str]] = {}

    def take(self, words: Sequence[tuple[str, str]], *, is_script: bool) -> None:
        """Take the options up to the command; of an option twice, the last one counts."""
        at = 0
        while at < len(words):
            word, place = words[at]
            at += 1
            if not word.startswith("-") or word in ("-", "--"):
                if is_script:
                    self.notes.append(f"{place}: {clip(word)} is not an option")
                    continue
                if not self.flux and word.endswith((".sh", ".sbatch", ".slurm", ".job")):
                    self.notes.append(f"the options in {clip(word)} are not read; give the script itself")
                return
            name, has_value, value = word.lstrip("-").partition("=")
            if not word.startswith("--"):
                name, value = word[1], word[2:]
                has_value = "=" if value else ""
            if name == "x" and self.flux:
                name = "exclusive"
            if not (has_value or name in _FLAGS) and at < len(words) and words[at][1] == place:
                value = words[at][0]
                at += 1
            self._given[self._names.get(name, name)] = (value.strip(), place)

    def text(self, name: str) -> str | None:
        """Return the value of an option, which is then used."""
        return self._given.pop(name, ("", ""))[0] or None

    def count(self, name: str) -> int | None:
        """Return a number of 1 or more; of a range, such as ``2-4`` nodes, the first."""
        value, place = self._given.pop(name, ("", ""))
        if not value:
            return None
        first, dash, _ = value.partition("-")
        if dash:
            self.notes.append(f"--{name}={clip(value)}: the smallest number is requested")
        if not (first.isascii() and first.isdigit() and len(first) < 12 and 1 <= int(first) <= MAX_COUNT):
            expected = "a whole number of 1 or more"
            raise FormatError(f"--{name} {clip(value)!r} is not valid", where=place, expected=expected)
        return int(first)

    def seconds(self) -> float | None:
        """Return the time limit: minutes, or a time in the notation of Slurm or Flux."""
        value, place = self._given.pop("time", ("", ""))
        if not value:
            return None
        from simsched.formats.rfc.duration import parse_duration

        try:
            minutes = self.flux and value.replace(".", "", 1).isdigit()
            return float(value) * 60 if minutes else parse_duration(value) if self.flux else time_limit(value)
        except FormatError as error:
            raise error.at(place) from None

    def constraint(self) -> str | None:
        """Return the constraint in RFC 35; one of Slurm with counts or brackets is noted."""
        if self.flux:
            return self.text("requires")
        value = self._given.get("constraint", ("", ""))[0]
        if not value or re.search(r"[\[\]*()!\s]", value):
            return None
        del self._given["constraint"]
        either = [re.split(r"[&,]", part) for part in value.split("|")]
        return " or ".join(" and ".join(map(property_name, names)) for names in either)

    def megabytes(self, name: str) -> int:
        """Return an amount of memory in MiB; 0 without one, and for Slurm's 0, all memory of a node."""
        value, place = self._given.get(name, ("", ""))
        if not value or value == "0":
            return 0
        del self._given[name]
        found = _MEMORY.fullmatch(value)
        if found is None:
            expected = "a size such as 16G"
            raise FormatError(f"--{name} {clip(value)!r} is not valid", where=place, expected=expected)
        return -int(-int(found[1]) * _MIB[found[2].upper()] // 1)

    def gpus(self, name: str) -> int:
        """Return the gpus of a list such as ``gpu:a100:2``; other resources and types are noted."""
        value, place = self._given.pop(name, ("", ""))
        total = 0
        bare = name != "gres"
        for part in value.split(",") if value else ():
            text = f"gpu:{part}" if bare else part.removeprefix("gres/").removeprefix("gres:")
            try:
                entry = gres_of(text.replace("=", ":"))[0]
            except (FormatError, IndexError):
                raise FormatError(
                    f"--{name} {clip(value)!r} is not valid", where=place, expected="such as gpu:2"
                ) from None
            if entry.name != "gpu":
                self.notes.append(f"--{name}={clip(part)} is not requested")
                continue
            if entry.type:
                self.notes.append(f"--{name}: gpus of any type are requested, not only {clip(entry.type)}")
            total += entry.count
        return total

    def shape(self) -> str:
        """Return the shape of the resources."""
        nodes, tasks, per_node = self.count("nodes"), self.count("ntasks"), self.count("ntasks-per-node")
        cores = self.count("cpus-per-task") or 1
        exclusive = self._given.pop("exclusive", None) is not None
        gpus_of_task, gpus_of_node, gpus = (self.gpus(f"gpus{end}") for end in ("-per-task", "-per-node", ""))
        gpus_of_node += self.gpus("gres")
        memory, of_core, of_gpu = (self.megabytes(f"mem{end}") for end in ("", "-per-cpu", "-per-gpu"))
        if self.flux and nodes and not tasks and not per_node:
            exclusive = True  # flux-submit(1), --exclusive
        if nodes is None and per_node and tasks:
            nodes = -(-tasks // per_node)
        if nodes is None and (gpus_of_node or memory or exclusive or per_node):
            nodes = 1
            self.notes.append("the number of nodes is not stated: one node is requested")
        if nodes is None:
            tasks = tasks or 1
            if gpus and gpus % tasks:  # they are anywhere
                raise FormatError(f"{gpus} gpus for {tasks} tasks", expected="--nodes or --gpus-per-task")
            own = gpus_of_task or gpus // tasks
            return f"slot={tasks}/{_inside(cores, own, of_core * cores + of_gpu * own)}"
        tasks = tasks or nodes * (per_node or 1)
        each = per_node or -(-tasks // nodes)
        if each * nodes != tasks:
            self.notes.append(f"{tasks} tasks on {nodes} nodes: {each} on each of them are requested")
        own = gpus_of_node or gpus_of_task * each or -(-gpus // nodes)
        memory = memory or of_core * cores * each + of_gpu * own
        whole = "{exclusive:true}" if exclusive else ""
        return f"node={nodes}{whole}/slot=1/{_inside(cores * each, own, memory)}"

    def note_rest(self) -> None:
        """Note the options that are not used."""
        for name, (value, _) in self._given.items():
            shown = f"{'-' if len(name) == 1 else '--'}{name}{f'={clip(value, 60)}' if value else ''}"
            self.notes.append(f"{shown} is not used")


def _inside(cores: int, gpus: int, memory: int) -> str:
    parts = [f"core={cores}"]
    if gpus:
        parts.append(f"gpu={gpus}")
    if memory:
        parts.append(f"memory={memory}{{unit:MiB}}")
    return parts[0] if len(parts) == 1 else f"[{';'.join(parts)}]"
