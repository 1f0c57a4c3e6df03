"""Fuzz the readers of requests: nothing but a SimschedError may come out of any of them.

    .venv/bin/python tests/formats/jobspec/fuzz_requests.py [SECONDS] [SEED]

Texts are grown from the seeds in ``corpus/`` by mutation, splicing and repetition; a text that
reaches a new outcome (a message not seen before, or a new size of result) joins the pool.  A text
that raises anything else, or takes longer than `SLOW`, is printed and kept in ``corpus/found/``.
"""

from __future__ import annotations

import json
import re
import sys
import time
from hashlib import sha1
from pathlib import Path

import numpy as np

from simsched.errors import SimschedError
from simsched.formats.jobspec.fast import Reader
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.shape import format_shape, parse_shape
from simsched.formats.rfc.constraint import from_json, parse_constraint
from simsched.formats.rfc.count import Count
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import format_duration, parse_duration
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.documents import load_document
from simsched.formats.text.json_text import load_json
from simsched.formats.text.yaml_text import load_yaml_all
from simsched.formats.validate import validate_text

CORPUS = Path(__file__).parent / "corpus"
SLOW = 10.0
POOL = 3000


def shape(text):
    """A shape that is read is the shape that is written."""
    resources = parse_shape(text)
    assert parse_shape(format_shape(resources)) == resources
    return [vertex.to_dict() for vertex in resources]


def idset(text):
    """An idset that is read is the idset that is written."""
    ids = Idset.parse(text)
    assert Idset.parse(str(ids)) == ids
    return len(ids)


def hostlist(text):
    """A hostlist that is read is the hostlist that is written."""
    hosts = Hostlist.parse(text)
    if len(hosts) < 10_000:
        assert Hostlist.parse(str(hosts)) == hosts
    return len(hosts)


def constraint(text):
    """The text of a constraint is read as the same text."""
    tree = parse_constraint(text)
    assert str(parse_constraint(str(tree))) == str(tree)
    return str(tree)


def constraint_json(text):
    """An RFC 31 document."""
    return str(from_json(load_document(text)))


def jobspec(text):
    """A document is valid or has faults; the quick reader passes only what the strict one does."""
    report = validate_text(text, "fuzz")
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return len(report.faults)
    if Reader().read(raw) is not None:
        assert Jobspec.from_dict(load_json(text)) == Reader().read(raw)
    for document in load_yaml_all(text)[:3]:
        Jobspec.from_dict(document)
    return len(report.faults)


def count(text):
    """A count that is read is the count that is written."""
    found = Count.parse(text)
    found._check()
    assert Count.parse(str(found)) == found
    assert Count.from_json(found.to_json()) == found
    return list(found.values(3)), found.largest_at_most(10**18)


def duration(text):
    """A duration."""
    seconds = parse_duration(text)
    assert parse_duration(format_duration(seconds)) == seconds
    return seconds


def dependency(text):
    """A dependency."""
    found = Dependency.parse(text)
    assert Dependency.parse(str(found)) == found
    return found.scheme


TARGETS = {
    f.__name__: f
    for f in (shape, idset, hostlist, constraint, constraint_json, jobspec, count, duration, dependency)
}

WORDS = """
0 1 2 9 00 010 1e3 -1 99999999999999999999 9007199254740993 inf nan null true false yes
slot node core gpu x default type count with label unit exclusive id min max operator operand
and or not host: rank: properties: hostlist ranks version resources tasks attributes system
duration environment per_slot command 1-4:2:* 2+:2:^ node[0-3] [00-12]
"""
MARKS = "[]{}()=/;:,+-*^\"'\\&|?.#~!@%<> \t\n\r\0\x85\u2028\ufeffé😀"
PIECES = ["---\n", "- ", "  ", ": ", "&a ", "*a", "<<: ", "!!str ", "|\n ", "[[", "]]", "\\u", "\ud800"]
TOKENS = [*MARKS, *WORDS.split(), *PIECES]


def seeds():
    """The seed corpus: target name -> texts."""
    return {name: json.loads((CORPUS / f"{name}.json").read_text()) for name in TARGETS}


def mutate(rng, pool):
    """A new text from the pool."""
    text = pool[rng.integers(len(pool))]
    for _ in range(int(rng.integers(1, 5))):
        at, end = sorted(rng.integers(0, len(text) + 1, 2).tolist())
        token = TOKENS[rng.integers(len(TOKENS))]
        match int(rng.integers(8)):
            case 0 | 1:
                text = text[:at] + token + text[at:]
            case 2:
                text = text[:at] + text[min(end, at + 3) :]
            case 3:
                text = text[:at] + token + text[at + 1 :]
            case 4:
                text = text[:at] + text[end:]
            case 5:
                other = pool[rng.integers(len(pool))]
                text = text[:at] + other[int(rng.integers(len(other) + 1)) :]
            case 6:
                text = text[:end] + text[at:end] * int(rng.integers(1, 4)) + text[end:]
            case 7:
                text = text[:at] + chr(int(rng.integers(32, 0x250))) + text[at:]
    return text[:5000]


def outcome(function, text):
    """What a target makes of a text, without its details; anything unexpected is raised."""
    try:
        return f"ok {min(len(str(function(text))), 200) // 8}"
    except SimschedError as error:
        message = str(error)
        assert message
        assert "Traceback" not in message
        return re.sub(r"(['\"]).*\1|\d+", "_", error.message, flags=re.DOTALL)[:60]


def fuzz(seconds, seed):
    """Fuzz for some seconds; returns how many texts were tried and how many were bad."""
    rng = np.random.default_rng(seed)
    pools = {name: list(texts) for name, texts in seeds().items()}
    seen = {name: set() for name in TARGETS}
    names = list(TARGETS)
    tried, bad, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        name = names[tried % len(names)]
        text = mutate(rng, pools[name])
        tried += 1
        start = time.process_time()
        try:
            what = outcome(TARGETS[name], text)
            spent = time.process_time() - start
            assert spent < SLOW, f"{spent:.1f} s"
        except Exception as error:  # noqa: BLE001 - that is what we are looking for
            bad += 1
            keep(name, text, error)
            continue
        if what not in seen[name] and len(pools[name]) < POOL:
            seen[name].add(what)
            pools[name].append(text)
    for name in names:
        say(f"{name}: {len(seen[name])} outcomes")
    return tried, bad


def say(line):
    """Write a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def keep(name, text, error):
    """Print a bad text and keep it."""
    folder = CORPUS / "found"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{sha1(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}.json"
    path.write_text(json.dumps([text]))
    say(f"{name}: {type(error).__name__}: {str(error)[:200]}\n  {text!r:.300}\n  kept in {path}")


if __name__ == "__main__":
    tried, bad = fuzz(float(sys.argv[1] if sys.argv[1:] else 600), int(sys.argv[2] if sys.argv[2:] else 0))
    say(f"{tried} texts, {bad} bad")
    sys.exit(bad > 0)
