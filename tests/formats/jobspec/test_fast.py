"""Many jobspecs at once: the quick reader says yes only to what the detailed validator passes."""

from __future__ import annotations

import json

import pytest

from simsched.errors import FormatError
from simsched.formats.jobspec import fast
from simsched.formats.jobspec.fast import Reader
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.request_files import load_jobspecs


def lines(count):
    jobs = [
        Jobspec.from_shape(
            f"slot={i % 50 + 1}/[core={i % 3 + 1};gpu]", duration=i, command=["app", str(i)], queue="batch"
        )
        for i in range(count)
    ]
    return jobs, [json.dumps(job.to_dict()) for job in jobs]


def test_json_lines_become_equal_jobspecs_that_share_their_parts(tmp_path):
    jobs, texts = lines(500)
    path = tmp_path / "jobs.jsonl"
    path.write_text("\n".join(texts))
    found = load_jobspecs(path)
    assert found == jobs
    assert found[0].resources is found[150].resources
    assert len({id(job.resources) for job in found}) == 150


def test_the_first_faulty_line_and_the_number_of_the_others(tmp_path):
    _, texts = lines(10)
    texts[3] = texts[3].replace('"gpu"', '"gpu", "colour": 1')
    texts[7] = texts[7].replace('"count": 1', '"count": 0')
    path = tmp_path / "jobs.jsonl"
    path.write_text("\n".join(texts))
    with pytest.raises(FormatError, match=r"jobs\.jsonl:4:\d+: resources.*unknown key 'colour', and \d more"):
        load_jobspecs(path)


@pytest.mark.parametrize(
    "change",
    [
        ('"version": 1', '"version": 1, "version": 1'),
        ('"type": "gpu"', '"type": "gpu", "type": "gpu"'),
        ('"per_slot": 1', '"per_slot": 1, "per_slot": 1'),
        ('"queue": "batch"', '"queue": "batch", "queue": "batch"'),
        ('"queue": "batch"', '"environment": {"A": "1", "A": "2"}'),
        ('"queue": "batch"', '"x": [{"a": 1, "a": 2}]'),
        ('"queue": "batch"', '"queue" : "a", "queue": "batch"'),
        ('"queue": "batch"', '"queue"\t: "a", "queue": "batch"'),
        ('"queue": "batch"', '"queue"\r: "a", "queue": "batch"'),
        ('"queue": "batch"', '"queue": "a\\u0022:b", "queue": "batch"'),
        ('"queue": "batch"', '"queue"\n: "a", "queue": "batch"'),
        ('"queue": "batch"', '"x": NaN'),
        ('"queue": "batch"', '"x": 1e999'),
        ('"queue": "batch"', '"queue": "\\ud800"'),
        ('"queue": "batch"', '"queue": "bat\tch"'),
    ],
)
def test_what_the_strict_reader_refuses_the_quick_one_does_not_pass(change):
    _, (text,) = lines(1)
    assert Reader().read(text.encode()) is not None
    faulty = text.replace(*change, 1)
    assert faulty != text
    assert Reader().read(faulty.encode()) is None


def test_quotes_in_strings_are_no_reason_to_look_twice():
    job = Jobspec.from_shape("slot/core", command=["sh", "-c", 'echo "a":"b" "\\"'])
    text = json.dumps(job.to_dict()).encode()
    assert Reader().read(text) == job
    assert Reader().read(text.replace(b'"duration": 0.0', b'"duration": 0.0, "duration": 0.0')) is None


def test_bytes_that_are_no_text(tmp_path):
    assert Reader().read(b'{"version": 1, "a": "\xff"}') is None
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "\xff"}')
    with pytest.raises(FormatError, match=r"jobs\.jsonl"):
        load_jobspecs(path)


def test_a_reader_that_has_seen_a_faulty_part_refuses_it_again():
    _, (text,) = lines(1)
    faulty = text.replace('"count": 1', '"count": 0').encode()
    reader = Reader()
    assert [reader.read(faulty), reader.read(faulty)] == [None, None]
    assert reader.read(text.encode()) is not None


def test_tasks_are_checked_against_the_slots_of_their_own_line():
    first = json.dumps(Jobspec.from_shape("slot{a}/core").to_dict())
    other = json.dumps(Jobspec.from_shape("slot{b}/core").to_dict())
    reader = Reader()
    assert reader.read(first.encode())
    assert reader.read(first.replace('"label": "a"', '"label": "b"').encode()) is None
    assert reader.read(other.encode())


def test_no_vertex_is_built_to_know_whether_a_jobspec_fits_v1(monkeypatch):
    """In a large file all requests may differ, and building the vertices takes most of the time."""
    jobs, texts = lines(3)
    monkeypatch.setattr(fast, "_vertex", None)
    assert [Reader().passes(text.encode(), v1=True) for text in texts] == [True, True, True]
    several = jobs[0].to_dict() | {"resources": [jobs[0].to_dict()["resources"][0]["with"][0]]}
    assert not Reader().passes(json.dumps(several).encode(), v1=True)
