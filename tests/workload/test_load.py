"""`load_workload`: any file, any content, one kind of error."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError, FormatError, LimitError, SimschedError
from simsched.workload import source as source_module
from simsched.workload.load import READERS, detect, load_workload
from simsched.workload.mapping import ReadOptions
from simsched.workload.save import WRITERS, lines_of, losses, save_workload
from simsched.workload.transforms.transforms import first, where

SAMPLES = {
    "model": "jobs: 1\ngap: 5m\nparts:\n- {shape: slot=2/core, runtime: 1h}\n",
    "swf": "; MaxProcs: 4\n1 0 5 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1\n",
    "gwf": "# JobID SubmitTime WaitTime RunTime …\n"
    f"1 1100000000 5 100 2 -1 -1 2 900 -1 1 U1 G1 X1 Q0 -1 S1 S1 UNITARY{' -1' * 10}\n",
    "jobs": "- {shape: slot=1/core, runtime: 5, depends: 'begin-time:3'}\n- {shape: node, duration: 1h,"
    " count: 2}\n",
    "jsonl": '{"shape": "slot=1/core", "runtime": 5}\n{"shape": "node", "duration": 7}\n',
    "sacct": "JobID|Submit|Start|Elapsed|NCPUS|State\n"
    "1|2024-01-01T00:00:00|2024-01-01T00:00:01|00:01:00|4|FAILED\n",
    "sacct-json": json.dumps(
        {
            "jobs": [
                {
                    "job_id": 1,
                    "time": {"submission": 5, "start": 6, "elapsed": 7, "limit": {"set": True, "number": 5}},
                    "required": {"CPUs": 4},
                    "association": {"user": "x"},
                    "state": {"current": ["COMPLETED"]},
                }
            ]
        }
    ),
    "squeue-json": json.dumps(
        {
            "jobs": [
                {
                    "job_id": 1,
                    "job_state": ["COMPLETED"],
                    "submit_time": {"set": True, "infinite": False, "number": 5},
                    "start_time": {"set": True, "infinite": False, "number": 6},
                    "end_time": 9,
                    "cpus": {"set": True, "infinite": False, "number": 4},
                    "time_limit": {"set": True, "infinite": True, "number": 0},
                }
            ]
        }
    ),
    "flux": '{"jobs": [{"id": 1, "t_submit": 5.5, "t_run": 6, "t_cleanup": 7, "ncores": 2, '
    '"result": "FAILED"}]}',
    "batsim": '{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 2, "profile": "a"}], '
    '"profiles": {"a": {"type": "delay", "delay": 5}}}',
    "sss": "<Job><Id>1</Id><SubmitTime>5</SubmitTime><Processors>4</Processors><Duration>60</Duration></Job>",
    "pbs": "03/01/2024 11:05:00;E;1.s;user=a qtime=5 start=6 end=9 Resource_List.ncpus=4 "
    "Resource_List.walltime=00:01:00\n",
    "sge": f"# Version: 8.1.9\nall.q:n1:staff:ada:sim:7:sge:0:1000:1060:1660:0:0:600{':0' * 17}"
    ":physics:default:mpi:16:0:1.5:2.5:0.5:-l h_rt=3600:0.0:NONE:1e9:0:0\n",
    "lsf": '"JOB_FINISH" "10.1" 1700000900 7 500 0 4 1700000000 0 0 1700000060 "ada" "q" "" "" "" "h" "c" ""'
    f' "" "" "" 0 1 "4*n1" 64 1.0 "j" "run"{" 0" * 19} "" "p" 0 4 "" "" 0\n',
    "table": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,v,8,16,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-09 19:42:01,3600,60\n",
}
SLOW = {"table"}
KINDS = [pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind for kind in sorted(READERS)]


def read(kind, text):
    """Read a text in a format as `load_workload` does once it has the text."""
    form = READERS[kind]
    return form.read(
        source_module.Source(source_module.Path("x"), "x", text.encode("utf-8", "replace")),
        ReadOptions(source="x"),
    )


def test_every_format_has_a_sample_that_is_told_by_its_content(tmp_path):
    assert set(SAMPLES) == set(READERS)
    for kind, text in SAMPLES.items():
        assert detect(text) == ("jobs" if kind == "table" else kind)  # its columns are those of a preset
        (tmp_path / "file").write_bytes(gzip.compress(text.encode()))
        workload = load_workload(tmp_path / "file")
        assert (workload.kind, len(workload)) == (kind, {"jobs": 3, "jsonl": 2}.get(kind, 1))
        assert workload.total_records == len(workload)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_damaged_files_are_refused_or_read_but_never_break(kind, data):
    """Whatever is cut out of a good file, doubled or put into it: a SimschedError or a workload."""
    text = SAMPLES[kind]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 12)))
    junk = data.draw(
        st.sampled_from(
            [
                "",
                "-1",
                "1e999",
                "nan",
                "99999999999999999999",
                "null",
                "[",
                "}",
                "\x00",
                "é",
                "|",
                "<a>",
                "\n",
            ]
        )
        | st.text(max_size=4)
    )
    with contextlib.suppress(SimschedError):
        workload = read(kind, text[:begin] + junk + text[end:])
        assert workload.total_records == len(workload) + sum(workload.skipped_counts.values())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(text=st.text(max_size=60))
def test_nonsense_is_refused_or_empty(kind, text):
    with contextlib.suppress(SimschedError):
        read(kind, text)


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_what_every_writer_writes_is_read_as_its_kind(kind, tmp_path):
    whole = load_workload("slurm-day")
    workload = first(where(whole, "gpus == 0") if kind == "sss" else whole, 50)  # Job Objects know no gpus
    path = tmp_path / "file"
    save_workload(workload, path, to=kind)
    back = load_workload(path)
    assert (back.kind, len(back)) == ({"batsim4": "batsim", "flux-fiction": "sacct"}.get(kind, kind), 50)
    again = tmp_path / "again"
    save_workload(back, again, to=kind)
    assert load_workload(again).jobs == back.jobs


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def broken(*_):
        yield "half"
        raise KeyboardInterrupt

    monkeypatch.setattr("simsched.workload.save.lines_of", broken)
    with pytest.raises(KeyboardInterrupt):
        save_workload(load_workload("first-steps"), tmp_path / "a.yaml")
    assert list(tmp_path.iterdir()) == []


def test_losses_name_only_what_is_there():
    workload = load_workload("first-steps")
    assert losses(workload, "jobs") == []
    assert losses(workload, "swf") == ["jobspec", "urgency", "dependencies"]
    assert losses(load_workload("month", limit=10), "swf") == []


def test_a_writer_that_does_not_exist():
    with pytest.raises(ConfigError, match="cannot write 'xls'"):
        lines_of(load_workload("first-steps"), "xls")


# ------------------------------------------------------------ sources


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SAMPLES["swf"].encode())))
    workload = load_workload("-")
    assert (workload.source, len(workload)) == ("stdin", 1)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    for kind in ("jobs", "sacct", "jsonl"):
        (tmp_path / "a").write_text("\ufeff" + SAMPLES[kind], encoding="utf-8")
        assert load_workload(tmp_path / "a").kind == kind


def test_too_much_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("simsched.formats.text.decompression.MAX_TEXT", 1000)
    (tmp_path / "a").write_bytes(gzip.compress(SAMPLES["swf"].encode() * 100))
    (tmp_path / "b").write_bytes(gzip.compress(SAMPLES["sacct"].encode() * 100))
    for name in "ab":
        with pytest.raises(LimitError, match="more than 1000 bytes"):
            load_workload(tmp_path / name)


def test_zstd_says_what_it_needs(tmp_path):
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 20)
    with pytest.raises(FormatError, match=r"a.zst"):
        load_workload(tmp_path / "a.zst")


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(SimschedError, match=r"/a: this is a binary file"):
        load_workload(tmp_path / "a")


def test_names_that_are_not_there_say_which_are():
    with pytest.raises(ConfigError, match=r"no such file.*first-steps, job-objects, month"):
        load_workload("mnth")
    with pytest.raises(ConfigError, match="cannot constrain by 'colour'"):
        load_workload("month", constrain=["colour"])


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("x.swf", b"1 2 3\n", ": no line of this file holds 18 numbers"),
        ("x.json", b'{"jobs": 3}', ": not a list of jobs"),
        ("x.xml", b"<Job>", ":1:6: not XML"),
        ("x.gz", b"\x1f\x8bxxx", ": the gzip data is truncated"),
        ("x.yaml", b'- {shape: "slot=1/core", runtime: x}', ": jobs[0].runtime: 'x' is not a duration"),
        ("x.sacct", b"JobID|Submit\n", ":1: columns are missing"),
    ],
)
def test_errors_call_the_file_as_the_user_did(tmp_path, monkeypatch, name, data, fault):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    for path in (f"in/{name}", f"./in/{name}", str(tmp_path / "in" / name)):
        with pytest.raises(SimschedError) as caught:
            load_workload(path)
        assert str(caught.value).startswith(f"{path}{fault}")


def test_a_place_that_cannot_be_written_to_is_called_as_the_user_did(tmp_path):
    workload = load_workload("first-steps")
    place = tmp_path / "no" / "x.yaml"
    with pytest.raises(SimschedError, match=f"^{place}: cannot be written: No such file or directory$"):
        save_workload(workload, place)
