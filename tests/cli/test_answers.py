"""Every answer in JSON, and every JSON file of a result, follows its schema of ``simsched schema``."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import is_typeddict

import jsonschema
import pytest

from simsched.cli import main
from simsched.cli.schema import ANSWERS as PLACES
from simsched.declare.answers import answer_schema
from simsched.declare.table import meanings
from simsched.match.explain.reason_codes import REASON_CODES
from simsched.workload.save import save_workload
from tests.cli.test_bad_rules import EVERYTHING
from tests.cli.test_check import LIMITS
from tests.cli.test_forecast_live import PICTURE
from tests.study.search.loglab import machine_and_log

JOBS = """\
jobs:
- {id: a, submit: 0, runtime: 900, duration: 1h, user: ann, queue: long, shape: slot=3/node}
- {id: b, submit: 60, runtime: 600, duration: 30m, user: bob, queue: short, shape: slot=2/node}
- {id: c, submit: 120, runtime: 60, duration: 10m, user: bob, queue: short, shape: slot=1/core}
- {id: d, submit: 130, runtime: 60, duration: 10m, user: bob, queue: long, shape: slot=9/node}
- {id: e, submit: 140, runtime: 60, duration: 10m, user: ann, queue: long, shape: slot=1/gpu}
- {id: f, submit: 150, runtime: 60, duration: 40m, user: ann, queue: long, shape: slot=4/node}
"""
NONE = "jobs: []\n"
BIG = "jobs:\n- {submit: 0, runtime: 10, duration: 1m, shape: slot=99/node}\n"
CLOSED = '[queues.long]\n[queues.short]\nclosed = [["1m", "inf"]]\n'
WEEKS = ["; MaxProcs: 4", "; UnixStartTime: 1704067200"]
WEEKS += [
    f"{n} {n * 21600} {n % 7 * 60} {600 + n % 5 * 900} 2 -1 -1 2 {3600 if n % 3 else -1} -1 1 {n % 4} 1"
    " -1 1 -1 -1 -1"
    for n in range(1, 160)
]
WEEKS += [f"{200 + n} {3500000 + 60 * n} 0 30 2 -1 -1 2 3600 -1 1 9 1 -1 1 -1 -1 -1" for n in range(60)]
QUOTAS = 'queue-policy = "conservative"\n' + LIMITS + '\n[[limits]]\nuser = "bob"\nrunning-jobs = 1\n'
OUTAGES = '{"outages": [{"ranks": "0", "start": 100, "end": 2000, "kind": "failure"}]}'
SITE = "NodeName=n[0-3] CPUs=4 RealMemory=1000\nPartitionName=all Nodes=ALL Default=YES MaxTime=60\nOdd=1\n"
SMALL = "jobs:\n- {submit: 0, runtime: 600, duration: 1h, shape: slot=2/core, count: 20, user: ann}\n"
FLAT = "groups:\n- {name: n, count: 4, cores: 4}\n"
STUDY = "cluster: flat.yaml\nworkload: small.yaml\naxes: {queue-policy: [fcfs, easy]}\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the inputs, a site, and runs of several kinds."""
    folder = tmp_path_factory.mktemp("answers")
    texts = {
        "jobs.yaml": JOBS,
        "none.yaml": NONE,
        "big.yaml": BIG,
        "closed.toml": CLOSED,
        "strict.toml": 'no-limit = "reject"\n' + LIMITS,
        "p.yaml": PICTURE,
        "queues.toml": QUOTAS,
        "out.json": OUTAGES,
    }
    texts |= {
        "slurm.conf": SITE,
        "log.swf": "\n".join(WEEKS) + "\n",
        "bad.yaml": "version: 1\nresources: []\n",
    }
    texts |= {
        "shapes.txt": "slot=1/core\nslot=/core\n",
        "study.yaml": STUDY,
        "small.yaml": SMALL,
        "flat.yaml": FLAT,
        "all.json": json.dumps(EVERYTHING),
        "ab.yaml": JOBS.replace("short", "b").replace("long", "a"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    cluster, log = machine_and_log(jobs=200, order="sjf")
    (folder / "m.json").write_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")))
    save_workload(log, folder / "log.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            "site import slurm.conf -o site --quiet",
            "run tiny jobs.yaml -o easy --quiet --eventlog",
            "run tiny jobs.yaml -o rules --quiet --config queues.toml --outages out.json --epilog 5..10",
            "run tiny jobs.yaml -o cut --quiet --until 200 --no-allocations --start-date 2024-01-01T00:00",
            "run tiny none.yaml -o none --quiet",
            "run tiny big.yaml -o big --quiet",
            "run tiny jobs.yaml -o closed --quiet --config closed.toml",
            "run tiny ab.yaml -o all --quiet --config all.json --order multifactor",
            "run m.json log.jsonl -o logged --quiet",
            "run m.json log.jsonl -o recorded --quiet --queue-policy recorded",
            "sweep study.yaml -o study --quiet --workers 0",
            "size flat.yaml small.yaml --target mean_wait<=1h --workers 0 --seeds 1 -o sized --runs --quiet",
            "calibrate m.json log.jsonl --knobs order --workers 0 -o calibrated --quiet",
        ):  # fmt: skip
            assert main(line.split()) in (0, 1), line
    return folder


ANSWERS = [
    ("check-findings", "check queues.toml out.json"),
    ("check-findings", "check --site site slurm.conf queues.toml"),
    ("cluster-differences", "cluster diff tiny topo16"),
    ("cluster-differences", "cluster diff tiny tiny"),
    ("cluster-summary", "cluster show racked"),
    ("cluster-summary", "cluster show slurm.conf"),
    ("feasible-answers", "feasible tiny slot=1/core slot=99/node slot=1/fpga slot=2/node=1/core=9"),
    ("feasible-answers", "feasible --cluster tiny --cluster topo16 slot=3/node --constraint nope"),
    ("feasible-answers", "feasible tiny slot=3/node --now --running slot=3/node --running slot=1/core"),
    (
        "feasible-answers",
        "feasible tiny slot=3/node slot/core --config queues.toml --queue short --duration 2h",
    ),
    ("feasible-answers", "feasible tiny slot=3/node slot/core --config queues.toml --running slot=2/node"),
    ("feasible-answers", "feasible tiny slot=1/core --config strict.toml --queue short"),
    ("fit-check", "workload fit log.swf --classes 2"),
    ("fit-check", "workload fit log.swf -t first(110) --classes 1"),
    ("flurries", "workload flurries log.swf"),
    ("flurries", "workload flurries log.swf --least 900"),
    ("forecast", "forecast tiny p.yaml"),
    ("forecast", "forecast tiny jobs.yaml --at 130 --queue-policy conservative"),
    ("forecast", "forecast tiny none.yaml --at 10"),
    ("forecast", "forecast m.json log.jsonl --at 30d --quantiles 0.5,0.9"),
    ("forecast-errors", "forecast m.json log.jsonl --errors"),
    ("r", "match tiny slot=1/core slot=99/node slot=2/node --format r"),
    ("match-answers", "match tiny slot=1/core slot=99/node slot=2/node slot=4/node"),
    ("policies", "policies"),
    ("policies", "policies metrics orders"),
    ("report", "report easy rules cut all closed"),
    ("report", "report none"),
    ("report-audit", "report --audit easy rules cut none closed"),
    ("report-promises", "report --promises easy rules"),
    ("report-promises", "report --promises none"),
    ("report-seeds", "report --seeds 2 --shake 1m --workers 0 easy rules"),
    ("report-seeds", "report --seeds 2 --shake 1m --workers 0 big easy"),
    ("report-table", "report easy --by queue"),
    ("report-table", "report easy rules --by job"),
    ("report-table", "report easy --by node"),
    ("report-table", "report none --by user"),
    ("report-table", "report logged --recorded hour"),
    ("site-facts", "site show site"),
    ("size", "size flat.yaml small.yaml --target mean_wait<=1h --seeds 1 --workers 0"),
    ("size", "size flat.yaml small.yaml --target mean_wait<=1s --seeds 2 --max 5 --workers 0 --shake 1m"),
    (
        "size",
        "size m.json log.jsonl --target p95_wait<=9d --target utilisation>=1% --seeds 2 --max 4 --workers 0",
    ),
    ("size", "headroom m.json log.jsonl --target mean_wait<=9d --seeds 1 --max 1.1 --workers 0"),
    ("rfc14", "shape slot=2/[core=2;gpu] --jobspec"),
    ("rfc14", "convert slot=2-4/core --to jobspec"),
    ("v1", "convert slot=2/core --to v1 --duration 1h"),
    ("calibration", "calibrate m.json log.jsonl --knobs order,epilog --workers 0"),
    ("calibration", "calibrate m.json log.jsonl --knobs depth --workers 0"),
    ("validate-reports", "validate bad.yaml shapes.txt jobs.yaml missing.yaml"),
    ("why-jobs", "why easy a b f"),
    ("why-jobs", "why rules a b c f"),
    ("why-jobs", "why all b c"),
    ("why-jobs", "why closed b"),
    ("why-run", "why all"),
    ("why-run", "why closed"),
    ("why-run", "why rules"),
    ("why-run", "why none"),
    ("workload-summary", "workload show jobs.yaml"),
    ("workload-summary", "workload show log.swf --capacity 8"),
    ("workload-summary", "workload show none.yaml"),
]


def schema_of(name, capsys):
    assert main(["schema", name]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def follows(document, schema):
    """Check that a schema takes a document, but not with another key, nor without one that it requires."""
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    for row in document[:1] if isinstance(document, list) else [document]:
        less = [{key: item for key, item in row.items() if key != name} for name in row]
        spoilt = [{**row, "no-such-key": []}, *less]
        refused = [not validator.is_valid([one] if isinstance(document, list) else one) for one in spoilt]
        assert refused[0]
        assert any(refused[1:]) or "additionalProperties" in schema  # of any keys


RUNS = ["easy", "rules", "cut", "none", "recorded", "all", "closed"]
FILES = [
    ("calibration", "calibrated/calibration.json"),
    ("run-allocation", "rules/allocations.jsonl"),
    ("run-allocation", "all/allocations.jsonl"),
    ("run-event", "easy/eventlog.jsonl"),
    *(("run-record", f"{name}/run.json") for name in RUNS),
    *(("run-summary", f"{name}/summary.json") for name in ("easy", "none")),
    ("site-record", "site/site.json"),
    ("size", "sized/answer.json"),
    ("study-failures", "study/failures.json"),
    ("study-record", "study/study.json"),
    ("study-row", "study/runs/*/row.json"),
    ("study-task", "study/runs/*/task.json"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file"), FILES, ids=[file for _, file in FILES])
def test_a_file_of_a_result_follows_its_schema(name, file, place, capsys):
    schema = schema_of(name, capsys)
    found = list(place.glob(file))
    assert found
    for path in found:
        text = path.read_text()
        for document in map(json.loads, text.splitlines() if path.suffix == ".jsonl" else [text]):
            follows(document, schema)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "line"), ANSWERS, ids=[line for _, line in ANSWERS])
def test_an_answer_follows_its_schema(name, line, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert main([*line.split(), *([] if "--format" in line else ["--format", "json"])]) in (0, 1, 2)
    out = capsys.readouterr().out
    schema = schema_of(name, capsys)
    for text in out.splitlines() if name == "r" else [out]:
        follows(json.loads(text, parse_constant=pytest.fail), schema)  # NaN is no JSON


def helps(capsys, words=()):
    """Yield each verb with its action, as they are typed, and its help."""
    assert main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    inner = re.search(r"^(?:verbs|actions|models):\n  [A-Z]+\n((?:    .*\n)+)", text, re.MULTILINE)
    if inner is None:
        yield " ".join(words), text
        return
    for name in re.findall(r"^    ([a-z]+)\b", inner[1], re.MULTILINE):
        yield from helps(capsys, (*words, name))


def test_every_verb_with_json_names_its_schemas_and_is_checked_here(capsys):
    named = set()
    for verb, text in helps(capsys):
        if not re.search(r"--format [{\[][^}\]]*\bjson\b", text):
            continue
        names = re.search(r"simsched schema ((?:[\w-]+(?:, | or )?)+)\.", " ".join(text.split()))
        assert names, f"{verb} has a format json and no schema"
        named |= {(verb, name) for name in re.split(", | or ", names[1])}
    checked = {
        (verb, name)
        for verb, name in named
        for known, line in ANSWERS
        if known == name and line.startswith(verb)
    }
    assert checked == named
    assert {name for name, _ in ANSWERS} <= {name for _, name in named}


@pytest.mark.parametrize("name", ["size", "calibration"])
def test_each_key_of_the_answer_of_a_search_has_a_meaning(name, capsys):
    schema = schema_of(name, capsys)
    keys = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
    assert [key for key, one in keys.items() if not one.get("description")] == []


def test_each_meaning_of_a_key_of_an_answer_is_in_a_schema(capsys):
    shown, texts = set(), {}
    for name, place in PLACES.items():
        schema = schema_of(name, capsys)
        parts = [schema, *schema.get("$defs", {}).values()]
        shown |= {one.get("description") for part in parts for one in part.get("properties", {}).values()}
        for kind in vars(import_module(f"simsched.{place.partition(':')[0]}")).values():
            if is_typeddict(kind) and kind.__module__ != answer_schema.__module__:
                texts |= dict.fromkeys(meanings((kind.__doc__ or "").replace("`", "")).values(), kind)
    assert {text: kind for text, kind in texts.items() if text not in shown} == {}


def test_the_codes_of_reasons_are_those_of_the_table(capsys):
    parts = schema_of("feasible-answers", capsys)["$defs"]
    assert parts["Reason"]["properties"]["code"]["enum"] == list(REASON_CODES)
