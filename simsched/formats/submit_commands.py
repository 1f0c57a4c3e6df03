"""Requests in the words of a resource manager: ``#SBATCH`` scripts, sbatch, srun and ``flux submit`` lines.

The options of sbatch(1) and flux-submit(1) that request resources become a shape; all others are noted.
A CPU of Slurm is a core here, unless a site says how many are one.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from simsched.errors import FormatError, clip
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.machines.site_facts import property_name
from simsched.formats.machines.slurm.notation import gres_of, time_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


class SlurmUnits(NamedTuple):
    """What the options of Slurm count on a machine.

    cpus_per_core : hardware threads, which are Slurm's CPUs, per core.
    gpu_types : type of gpu in lower case → the property of its gpus (``a100@gpu``), or the type of resource
        that it is (``mig-1g.5gb``); None: not known, so that gpus of any type are requested.
    has_memory : whether jobs request memory.
    """

    cpus_per_core: int = 1
    gpu_types: Mapping[str, str] | None = None
    has_memory: bool = True


ANY_UNITS = SlurmUnits()


def is_command(text: str) -> bool:
    """Whether a text is a command that submits a job.

    >>> is_command("flux submit -n4 x"), is_command("flux=2"), is_command("srun=1/core")
    (True, False, False)
    """
    return _COMMAND.match(text) is not None


def command_requests(text: str, where: str, units: SlurmUnits = ANY_UNITS) -> list[CommandRequest] | None:
    """Return the requests of a script with directives, or of commands, one per line; None for other texts.

    `units` are those of the machine, for commands of Slurm.

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
        options = _Options(notes, None if word != "SBATCH" else units)
        return [_request(options, words, where, where, is_script=True)]
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
        options = _Options([], None if match[1].startswith("flux") else units)
        found.append(_request(options, words, line.strip(), place))
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
    options: _Options, words: Sequence[tuple[str, str]], label: str, where: str, *, is_script: bool = False
) -> CommandRequest:
    options.take(words, is_script=is_script)
    try:
        jobspec = Jobspec.from_shape(
            options.shape(), duration=options.seconds(), queue=options.partition(),
            constraint=options.constraint(), name=options.text("job-name"),
        )  # fmt: skip
    except FormatError as error:
        raise error if error.where else error.at(where) from None
    options.note_rest()
    return CommandRequest(label, jobspec, tuple(dict.fromkeys(options.notes)))


class _Options:
    """The options of one command; those that are read are taken out, and the rest is noted.

    units : None for a command of Flux.
    """

    def __init__(self, notes: list[str], units: SlurmUnits | None) -> None:
        self.notes = notes
        self.flux = units is None
        self._units = units or ANY_UNITS
        self._gpu = "gpu"
        self._kinds: dict[str, None] = {}
        self._names = _FLUX if self.flux else _SLURM
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

    def partition(self) -> str | None:
        """Return the partition or queue; of several, of which Slurm takes any, the first."""
        first, _, more = (self.text("partition") or "").partition(",")
        if more:
            self.notes.append(f"--partition: {clip(first)} is requested, and not {clip(more)}")
        return first or None

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
            minutes = self.flux and value.replace(".", "", 1).isdecimal()
            return float(value) * 60 if minutes else parse_duration(value) if self.flux else time_limit(value)
        except FormatError as error:
            raise error.at(place) from None

    def constraint(self) -> str | None:
        """Return the constraint in RFC 35, with the types of gpus; one with counts or brackets is noted."""
        if self.flux:
            return self.text("requires")
        value = self._given.get("constraint", ("", ""))[0]
        parts = list(self._kinds)
        if value and not re.search(r"[\[\]*()!\s]", value):
            del self._given["constraint"]
            either = [re.split(r"[&,]", part) for part in value.split("|")]
            features = " or ".join(" and ".join(map(property_name, names)) for names in either)
            parts.insert(0, f"({features})" if parts else features)
        return " and ".join(parts) or None

    def megabytes(self, name: str) -> int:
        """Return an amount of memory in MiB; 0 without one, and for Slurm's 0, all memory of a node."""
        value, place = self._given.get(name, ("", ""))
        if not value or value == "0" or not self._units.has_memory:  # the rest is noted
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
            if entry.type and self._units.gpu_types is None:
                self.notes.append(f"--{name}: gpus of any type are requested, not only {clip(entry.type)}")
            elif entry.type:
                self._take_kind(entry.type, place)
            total += entry.count
        return total

    def _take_kind(self, name: str, where: str) -> None:
        """Request gpus of a type: by a property of them, or as the resource that slices of gpus are."""
        kind = (self._units.gpu_types or {}).get(name.lower(), f"{property_name(name)}@gpu")
        unit = "gpu" if "@" in kind else kind
        if self._kinds.keys() - {kind} or self._gpu not in ("gpu", unit):
            message = f"gpus of several types, one of them {clip(name)}"
            raise FormatError(message, where=where, expected="gpus of one type, or a shape")
        self._gpu = unit
        if unit == "gpu":
            self._kinds[kind] = None

    def shape(self) -> str:
        """Return the shape of the resources."""
        nodes, tasks, per_node = self.count("nodes"), self.count("ntasks"), self.count("ntasks-per-node")
        cpus, per_core = self.count("cpus-per-task") or 1, self._cpus_per_core()
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
            if not own and cpus % per_core:  # tasks share cores
                tasks, cpus = -(-tasks * cpus // per_core), per_core
            return f"slot={tasks}/{self._inside(-(-cpus // per_core), own, of_core * cpus + of_gpu * own)}"
        tasks = tasks or nodes * (per_node or 1)
        each = per_node or -(-tasks // nodes)
        if each * nodes != tasks:
            self.notes.append(f"{tasks} tasks on {nodes} nodes: {each} on each of them are requested")
        own = gpus_of_node or gpus_of_task * each or -(-gpus // nodes)
        memory = memory or of_core * cpus * each + of_gpu * own
        whole = "{exclusive:true}" if exclusive else ""
        return f"node={nodes}{whole}/slot=1/{self._inside(-(-cpus * each // per_core), own, memory)}"

    def _cpus_per_core(self) -> int:
        """Return the CPUs of a core; with one thread per core, as a job may request it, a CPU is a core."""
        per_core = self._units.cpus_per_core
        for name, value in (("hint", "nomultithread"), ("threads-per-core", "1")):
            if per_core > 1 and self._given.get(name, ("", ""))[0] == value:
                del self._given[name]
                return 1
        if per_core > 1:
            self.notes.append(f"{per_core} CPUs are a core")
        return per_core

    def _inside(self, cores: int, gpus: int, memory: int) -> str:
        parts = [f"core={cores}"]
        if gpus:
            parts.append(f"{self._gpu}={gpus}")
        if memory:
            parts.append(f"memory={memory}{{unit:MiB}}")
        return parts[0] if len(parts) == 1 else f"[{';'.join(parts)}]"

    def note_rest(self) -> None:
        """Note the options that are not used."""
        for name, (value, _) in self._given.items():
            shown = f"{'-' if len(name) == 1 else '--'}{name}{f'={clip(value, 60)}' if value else ''}"
            self.notes.append(f"{shown} is not used")
