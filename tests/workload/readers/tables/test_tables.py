"""Tables by a column map: formats, units, zones, requests, and every kind of bad row and bad map."""

from __future__ import annotations

import gzip
import json
from contextlib import nullcontext

import duckdb
import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

import simsched as ss
from simsched.cli import main
from simsched.errors import ConfigError, FormatError, SimschedError, WorkloadError
from simsched.workload.load import load_workload
from simsched.workload.readers.tables.column_map import ColumnMap

BASE = {"id": "id", "submit": "at", "runtime": "run", "cores": "n"}
HEAD = "id,at,run,n\n"


def read(folder, text, columns=BASE, name="t.csv", **rest):
    path = folder / name
    path.write_text(text)
    options = {key: rest.pop(key) for key in ("strict", "limit", "map", "constrain") if key in rest}
    return load_workload(path, columns={"columns": columns, **rest}, **options)


def rows(workload):
    return [(job.id, job.submit, job.runtime, job.procs) for job in workload]


SAME = [(1, 0, 60, 4), (2, 5, 61, 8)]


@pytest.mark.parametrize("form", ["csv", "tsv", "gz", "zst", "parquet", "jsonl", "json", "json.gz", "bz2"])
def test_one_table_in_every_form(tmp_path, form):
    path = tmp_path / f"t.{form}"
    table = (
        "select unnest([1, 2]) as id, unnest([100, 105]) as at, unnest([60, 61]) as run, unnest([4, 8]) as n"
    )
    records = [{"id": 1, "at": 100, "run": 60, "n": 4}, {"id": 2, "at": 105, "run": 61, "n": 8}]
    text = HEAD + "1,100,60,4\n2,105,61,8\n"
    if form == "parquet":
        duckdb.sql(table).write_parquet(str(path))
    elif form == "zst":
        duckdb.sql(f"copy ({table}) to '{path}' (format csv, header, compression zstd)")
    elif form == "bz2":
        import bz2

        path.write_bytes(bz2.compress(text.encode()))
    else:
        text = text.replace(",", "\t") if form == "tsv" else text
        text = "\n".join(map(json.dumps, records)) if form == "jsonl" else text
        text = json.dumps(records) if form.startswith("json") and form != "jsonl" else text
        path.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())
    assert rows(load_workload(path, columns={"columns": BASE})) == SAME


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    for month, at in ((1, 100), (2, 90)):
        (tmp_path / f"month={month}").mkdir()
        query = f"select {month} as id, {at} as at, 60 as run, 4 as n"
        duckdb.sql(query).write_parquet(str(tmp_path / f"month={month}" / "a.parquet"))
    assert rows(load_workload(tmp_path, columns={"columns": BASE})) == [(2, 0, 60, 4), (1, 10, 60, 4)]


def test_a_file_whose_name_is_a_pattern(tmp_path):
    for name in ("t[1].csv", "t1.csv", "it's*.csv"):
        (tmp_path / name).write_text(HEAD + f"{len(name)},100,60,4\n")
    assert [job.id for job in load_workload(tmp_path / "t[1].csv", columns={"columns": BASE})] == [8]
    assert [job.id for job in load_workload(tmp_path / "it's*.csv", columns={"columns": BASE})] == [9]


def test_data_frames(tmp_path):
    frame = pd.DataFrame({"id": [1, 2], "at": [100, 105], "run": [60, 61], "n": [4, 8]})
    assert rows(load_workload(frame, map={"columns": BASE})) == SAME
    assert rows(ss.Workload.from_frame(frame, map={"columns": BASE})) == SAME
    assert rows(ss.Workload.from_frame(frame, {"columns": BASE}, limit=1)) == SAME[:1]
    frame["at"] = pd.to_datetime(frame["at"], unit="s")
    frame["run"] = pd.to_timedelta(frame["run"], unit="s")
    assert rows(load_workload(frame, map={"columns": BASE})) == SAME
    with pytest.raises(ConfigError, match="no preset fits the columns id, at, run, n"):
        load_workload(frame)


def test_the_jobs_of_a_run_keep_their_dependencies(tmp_path):
    (tmp_path / "jobs.yaml").write_text(
        "- {id: a, submit: 0, shape: slot=1/core, duration: 10, runtime: 5}\n"
        "- {id: b, submit: 0, shape: slot=1/core, duration: 10, depends: [afterok:a, begin-time:7]}\n"
    )
    whole = ss.load_workload(tmp_path / "jobs.yaml")
    run = ss.simulate("tiny", whole)
    assert run.jobs["depends"].tolist()[1] == "afterok:a,begin-time:7"
    again = ss.Workload.from_frame(run.jobs)
    assert [job.dependencies for job in again.jobs] == [job.dependencies for job in whole.jobs]
    assert ss.simulate("tiny", again).jobs["start"].tolist() == [0, 7]
    with pytest.raises(WorkloadError, match=r"depends.*'a'"):
        ss.Workload.from_frame(run.jobs[1:])


def test_absent_and_odd_values_in_frames_of_jobs():
    columns = {"id": ["a", "b"], "shape": ["core", "core"], "submit": [0, 1], "duration": [9, 9]}
    frame = pd.DataFrame(columns).assign(
        user=pd.array(["ann", pd.NA], dtype="string"),
        runtime=pd.array([pd.NA, 7], dtype="Int64"),
        depends=[None, np.array(["afterok:a"])],
    )
    first, second = load_workload(frame)
    assert (first.user, first.runtime, second.user, second.runtime) == ("ann", None, None, 7)
    assert [str(item.value) for item in second.dependencies] == ["a"]
    for value in (pd.Timestamp("2024-01-01"), b"x"):
        with pytest.raises(WorkloadError, match=r"data frame:2: .* is neither a number nor a text"):
            load_workload(frame.assign(name=["a", value]))


def test_a_map_in_a_file(tmp_path):
    (tmp_path / "m.yaml").write_text("columns:\n  submit: at\n  runtime: run\n  cores: n\n")
    (tmp_path / "t.csv").write_text(HEAD + "7,100,60,4\n")
    for word in ("map", "columns"):
        found = load_workload(tmp_path / "t.csv", **{word: str(tmp_path / "m.yaml")})
        assert rows(found) == [(1, 0, 60, 4)]  # without a column of ids the number of the row


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("1700000000", {}),
        ("1700000000", {"format": "epoch"}),
        ("1700000000000", {"format": "epoch-ms"}),
        ("1700000000000000", {"format": "epoch-us"}),
        ("2023-11-14 22:13:20", {}),
        ("2023-11-14T22:13:20Z", {}),
        ("2023-11-14T23:13:20+01:00", {}),
        ("2023-11-14 23:13:20", {"zone": "Europe/Rome"}),
        ("2023-11-14T22:13:20Z", {"zone": "Europe/Rome"}),
        ("14/11/2023 22h13m20", {"format": "%d/%m/%Y %Hh%Mm%S"}),
        ("14/11/2023 23:13:20 +0100", {"format": "%d/%m/%Y %H:%M:%S %z"}),
        ("14.11.2023 23:13:20", {"format": "%d.%m.%Y %H:%M:%S", "zone": "europe/rome"}),
    ],
)
def test_times(tmp_path, cell, options):
    workload = read(tmp_path, HEAD + f"1,{cell},60,4\n", {**BASE, "submit": {"column": "at", **options}})
    assert workload.header["UnixStartTime"] == "1700000000"
    assert len(workload) == 1


def test_a_zone_with_summer_time(tmp_path):
    text = HEAD + "1,2024-03-31 01:30:00,60,4\n2,2024-03-31 03:30:00,60,4\n"
    assert [job.submit for job in read(tmp_path, text, zone="Europe/Rome")] == [0, 3600]


@pytest.mark.parametrize(
    ("cell", "options", "limit"),
    [
        ("90", {}, 90), ("90", {"unit": "min"}, 5400), ("1.5", {"unit": "h"}, 5400),
        ("90000", {"unit": "ms"}, 90),
        ("01:30:00", {}, 5400), ("1-00:00:10", {}, 86410), ("0 days 01:30:00", {}, 5400), ("90m", {}, 5400),
        ("UNLIMITED", {}, None), ("inf", {}, None), ("-1", {}, None), ("0", {}, None), ("", {}, None),
        ("777", {"missing": [777]}, None), ("0.5", {}, 0.5),
    ],
)  # fmt: skip
def test_durations(tmp_path, cell, options, limit):
    text = f"id,at,run,n,max\n1,100,60,4,{cell}\n"
    (job,) = read(tmp_path, text, {**BASE, "limit": {"column": "max", **options}})
    assert job.duration == limit


@pytest.mark.parametrize("cell", ["UNLIMITED", "infinity", "-inf", "-1e300", "1e300"])
def test_a_run_time_without_bounds_leaves_out_its_row_alone(tmp_path, cell):
    text = f"id,at,run,n,end\n1,100,60,4,200\n2,100,{cell},4,200\n"
    found = read(tmp_path, text, {**BASE, "end": "end"})
    assert [job.id for job in found] == [1]
    (reason,) = found.skipped_counts
    assert reason == ("a negative run time" if "-" in cell else "a run time of more than 30,000 years")


@pytest.mark.parametrize(
    ("cell", "options", "kilobytes"),
    [
        ("4", {"unit": "GiB"}, 2**20), ("4.096", {"unit": "GB"}, 1_000_000),
        ("8", {"unit": "MiB", "per": "core"}, 8192), ("8", {"unit": "MiB", "per": "node"}, 4096),
        ("4096", {}, 2**20), ("4G", {}, 2**20), ("8Mc", {}, 8192), ("8Mn", {}, 4096), ("4 GiB", {}, 2**20),
        ("", {}, None),
    ],
)  # fmt: skip
def test_memory_is_kilobytes_per_processor(tmp_path, cell, options, kilobytes):
    text = f"id,at,run,n,k,mem\n1,100,60,4,2,{cell}\n"
    (job,) = read(tmp_path, text, {**BASE, "nodes": "k", "memory": {"column": "mem", **options}})
    assert job.memory == kilobytes


@pytest.mark.parametrize(
    ("columns", "row", "shape"),
    [
        ({"cores": "c"}, "", "slot=64/core"),
        ({"cores": "c", "gpus": "g"}, "", "slot=8/[core=8;gpu]"),
        ({"cores": "c", "gpus": "g"}, "cores", "slot=8/[core=8;gpu]"),
        ({"nodes": "k"}, "", "slot=2/node"),
        ({"cores": "c", "nodes": "k"}, "nodes", "slot=2/node"),
        ({"gpus": "g"}, "", "slot=8/gpu"),
        ({"cores": "c", "nodes": "k", "gpus": "g"}, "node={nodes}/slot={gpn}/[core={cpg};gpu]",
         "node=2/slot=4/[core=8;gpu]"),
        ({"cores": {"expression": "c / 1000.0"}}, "", "slot/core"),
        ({"nodelist": "l"}, "", "slot=3/node"),
    ],
)  # fmt: skip
def test_what_a_row_becomes(tmp_path, columns, row, shape):
    text = 'at,run,c,k,g,l\n100,60,64,2,8,"n[1-2],m7"\n'
    rest = {"row": row} if row else {}
    if "nodelist" in columns:
        rest["row"] = "nodes"
    (job,) = read(tmp_path, text, {"submit": "at", "runtime": "run", **columns}, **rest)
    assert job.jobspec.to_shape() == shape
    (job,) = read(tmp_path, text, {"submit": "at", "runtime": "run", **columns}, map="slot=7/core", **rest)
    assert job.jobspec.to_shape() == "slot=7/core"


@pytest.mark.parametrize("more", [{}, {"nodes": "k"}, {"cores": "c"}])
def test_the_nodes_on_which_a_row_ran_are_kept(tmp_path, more):
    text = 'at,run,c,k,l\n100,60,64,3,"n[1-2],m7"\n101,60,64,3,\n'
    columns = {"submit": "at", "runtime": "run", "nodelist": "l", **more}
    jobs = read(tmp_path, text, columns, row="nodes", map="slot=1/core").jobs
    assert [job.nodelist for job in jobs] == ["n[1-2],m7", None][: len(jobs)]


def test_expressions_filters_names_and_states(tmp_path):
    text = """id,at,run,n,who,project,part,how,after
a1,100,60,4,ann,p,batch,DONE,100
a2,101,60,4,bob,p,debug,cancelled by 7,160
a3,102,60,4,,,batch,RUNNING,
a4,103,60,4,eve,q,batch,odd,
a5,104,60,4,eve,q,test,DONE,
"""
    columns = {
        **BASE, "cores": {"expression": "n * (case when part = 'debug' then 2 else 1 end)"}, "user": "who",
        "account": "project", "queue": "part", "state": {"column": "how", "values": {"DONE": "COMPLETED"}},
        "eligible": "after",
    }  # fmt: skip
    workload = read(tmp_path, text, columns, filter="part != 'test'", constrain=["partition"])
    found = [(job.id, job.procs, job.user, job.bank, job.queue, job.status) for job in workload]
    assert found == [
        ("a1", 4, "ann", "p", "batch", "COMPLETED"),
        ("a2", 8, "bob", "p", "debug", "CANCELED"),
        ("a4", 4, "eve", "q", "batch", None),
    ]
    assert workload.skipped_counts == {
        "left out by the filter of the column map": 1,
        "still running when the log was taken": 1,
    }
    assert workload.notes == ("states without a meaning here: 'odd' (columns.state.values names it)",)
    assert [[str(item) for item in job.dependencies] for job in workload] == [[], ["begin-time:60"], []]
    assert [str(job.jobspec.constraint) for job in workload] == ["batch", "debug", "batch"]


def test_start_and_wait_follow_from_the_end(tmp_path):
    columns = {"submit": "at", "end": "done", "runtime": "run", "cores": "n"}
    workload = read(tmp_path, "at,done,run,n\n100,200.5,60,1\n100,130,60,1\n", columns)
    assert [(job.wait, job.runtime) for job in workload] == [(40.5, 60), (None, 60)]


BAD = """id,at,begun,done,n,g
1,100,110,170,4,0
2,soon,110,170,4,0
3,,110,170,4,0
4,100,90,170,4,0
5,100,170,110,4,0
6,100,110,170,many,0
7,100,110,170,0,0
8,100,,,4,0
1,101,110,170,4,0
,100,110,170,4,0
9,100,110
10,100,110,170,4,0,7,7
11,100,110,170,4,x
"""
CAUSES = {
    "submit is not a time": 1,
    "no submit time": 1,
    "starts before it is submitted": 1,
    "ends before it starts": 1,
    "cores is not a number": 1,
    "no processors": 1,
    "never started": 1,
    "job id occurs twice": 1,
    "no job id": 1,
    "fewer cells than the header has": 1,
    "more cells than the header has": 1,
    "gpus is not a number": 1,
}
COLUMNS = {"id": "id", "submit": "at", "start": "begun", "end": "done", "cores": "n", "gpus": "g"}


def test_bad_rows_are_counted_by_cause(tmp_path):
    workload = read(tmp_path, BAD, COLUMNS)
    assert [job.id for job in workload] == [1]
    assert dict(workload.skipped_counts) == CAUSES
    assert workload.total_records == 13
    found = {skip.reason: (skip.where, skip.text) for skip in workload.skipped}
    assert found["submit is not a time"] == ("t.csv: row 2", "soon")
    assert found["more cells than the header has"] == ("t.csv:13", "10,100,110,170,4,0,7,7")
    with pytest.raises(WorkloadError, match=r"record refused: fewer cells than the header has"):
        read(tmp_path, BAD, COLUMNS, strict=True)
    with pytest.raises(WorkloadError, match=r"t\.csv: row 2: record refused: submit is not a time: 'soon'"):
        read(tmp_path, "\n".join(BAD.splitlines()[:4]), COLUMNS, strict=True)


def test_negative_run_times_and_requests_that_lack_a_value(tmp_path):
    text = "id,at,run,n,k\n1,100,-5,4,1\n2,100,5,4,\n3,100,5,4,2\n"
    workload = read(tmp_path, text, {**BASE, "nodes": "k"}, row="node={nodes}/core")
    assert [job.id for job in workload] == [3]
    assert workload.skipped_counts == {
        "a negative run time": 1,
        "the map needs {nodes}, which the record lacks": 1,
    }


def test_many_bad_rows_are_listed_in_part_and_counted_in_full(tmp_path):
    duckdb.sql("select i as id, null::int as at, 5 as run, 1 as n from range(3000) t(i)").write_parquet(
        str(tmp_path / "t.parquet")
    )
    workload = load_workload(tmp_path / "t.parquet", columns={"columns": BASE})
    assert workload.skipped_counts == {"no submit time": 3000}
    assert len(workload.skipped) == 1000
    assert workload.total_records == 3000


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({**BASE, "cores": "m"}, r"columns\.cores: there is no column 'm'"),
        ({**BASE, "cores": "nn"}, r"there is no column 'nn' in t\.csv; did you mean n"),
        ({**BASE, "cores": {"expression": "n * mm"}}, r"columns\.cores: there is no column 'mm'"),
        ({**BASE, "cores": {"expression": "n * (select 1)"}}, r"a query is not allowed"),
        ({**BASE, "cores": {"expression": "1) from source where (1 = 1"}}, r"is not one expression"),
        ({**BASE, "cores": {"expression": "n; drop table t"}}, r"is not an expression in SQL"),
        ({**BASE, "cores": {"expression": "sum(n) over ()"}}, r"a window function is not allowed"),
        ({**BASE, "cores": {"expression": "nonsense(n)"}}, r"(?i)function .*nonsense"),
        ({**BASE, "cores": {"column": "n", "expression": "n"}}, r"the source of the value is not clear"),
        ({**BASE, "coers": "n"}, r"unknown key 'coers'; did you mean cores"),
        ({"id": "id", "submit": "at", "cores": "n"}, r"no run time \(expected runtime, or start and end\)"),
        ({"submit": "at", "runtime": "run"}, r"no size"),
        ({**BASE, "submit": {"column": "at", "zone": "Europe/Rom"}}, r"time zone 'Europe/Rom'; did you mean"),
        (
            {**BASE, "submit": {"column": "at", "format": "epoc"}},
            r"'epoc' is not a format of times \(expected iso, epoch",
        ),
        (
            {**BASE, "runtime": {"column": "run", "unit": "week"}},
            r"unknown value 'week' \(expected ns, us, ms, s",
        ),
        ({**BASE, "submit": "word"}, r"no value of the column 'word' is a time, such as 'soon'"),
    ],
)
def test_bad_maps(tmp_path, columns, message):
    with pytest.raises(SimschedError, match=message):
        read(tmp_path, "id,at,run,n,word\n1,100,60,4,soon\n2,101,60,4,later\n", columns)


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (r'"q\"t"', r'["q\"t"]'),
        (r'"a\\"', r'["a\\"]'),
        ('""', '[""]'),
        ('"a: b"', '["a: b"]'),
        ("2", '["2"]'),
        ("DONE", ".DONE"),
    ],
)
def test_a_fault_of_a_map_has_its_line_whatever_the_key(tmp_path, key, place):
    path = tmp_path / "map.yaml"
    path.write_text(f"columns:\n  state:\n    values:\n      {key}: nope\n")
    with pytest.raises(FormatError) as caught:
        load_workload(tmp_path / "t.csv", columns=str(path))
    assert str(caught.value).startswith(
        f"{path}:4:{9 + len(key)}: columns.state.values{place}: unknown value"
    )


def test_every_fault_of_a_map_has_its_line_however_long_the_name_of_the_file(tmp_path):
    folder = tmp_path.joinpath(*["long" * 50] * 4)
    folder.mkdir(parents=True)
    path = folder / "map.yaml"
    path.write_text("columns:\n  submit: []\n  cores: {unit: s}\nrow: ''\n")
    with pytest.raises(FormatError) as caught:
        load_workload(tmp_path / "t.csv", columns=str(path))
    found = [str(fault).partition("map.yaml:")[2] for fault in (caught.value, *caught.value.others)]
    assert [place.partition(": ")[0] for place in found] == ["2:11", "3:11", "4:6"]


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        ("t", True),
        ({"column": "t"}, True),
        ({"expression": "t + 1", "zone": "UTC"}, True),
        ({"column": "t", "expression": "t + 1"}, False),
        ({"zone": "UTC"}, False),
    ],
)
def test_the_schema_takes_the_entries_that_the_reader_takes(capsys, entry, fits):
    document = {"columns": {"submit": entry, "runtime": "run", "cores": "n"}}
    assert main(["schema", "column-map"]) == 0
    assert Draft202012Validator(json.loads(capsys.readouterr().out)).is_valid(document) is fits
    with nullcontext() if fits else pytest.raises(ConfigError, match="source of the value"):
        ColumnMap.read(document, "map")


@pytest.mark.parametrize("text", ["n", "n = ", "nothing = 1", "exists (select 1)"])
def test_bad_filters(tmp_path, text):
    with pytest.raises(SimschedError, match=r"filter"):
        read(tmp_path, HEAD + "1,100,60,4\n", filter=text)


def test_nested_columns_are_refused_and_their_fields_read(tmp_path):
    path = tmp_path / "t.parquet"
    duckdb.sql("select 1 as id, 5 as at, {'run': 60, 'n': 4} as job, [1, 2] as l").write_parquet(str(path))
    for column in ("job", "l"):
        with pytest.raises(ConfigError, match=rf"the column '{column}' is nested \("):
            load_workload(path, columns={"columns": {**BASE, "runtime": "job.run", "cores": column}})
    found = load_workload(path, columns={"columns": {**BASE, "runtime": "job.run", "cores": "job.n"}})
    assert rows(found) == [(1, 0, 60, 4)]


def test_expressions_cannot_read_files(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nx\n")
    for text in (f"len(read_text('{secret}'))", f"(from read_csv('{secret}'))"):
        with pytest.raises(SimschedError):
            read(tmp_path, HEAD + "1,100,60,4\n", {**BASE, "cores": {"expression": text}})


@pytest.mark.parametrize(
    ("name", "content"),
    [("t.csv", b""), ("t.csv", b"\x00\x01"), ("t.parquet", b"PAR1 and no more"), ("t.json", b'[{"id": 1'),
     ("t.csv.gz", b"\x1f\x8b cut")],
)  # fmt: skip
def test_content_that_is_not_a_table(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((FormatError, ConfigError, WorkloadError)):
        load_workload(tmp_path / name, columns={"columns": BASE})


def test_an_empty_table(tmp_path):
    workload = read(tmp_path, HEAD)
    assert (len(workload), workload.total_records) == (0, 0)


def test_a_parquet_file_without_a_map(tmp_path):
    path = tmp_path / "t.parquet"
    duckdb.sql("select 1 as id, 5 as at").write_parquet(str(path))
    with pytest.raises(ConfigError, match=r"no preset fits the columns id, at \(expected --columns MAP"):
        load_workload(path)


def test_order_and_blocks(tmp_path, monkeypatch):
    """Jobs are in submit order, equal times in the order of the rows, whatever the size of a block."""
    from simsched.workload.readers.tables import table_reader

    path = tmp_path / "t.parquet"
    query = "select i as id, (i * 7919) % 1000 as at, 5 as run, 1 + i % 3 as n from range(10000) t(i)"
    duckdb.sql(query).write_parquet(str(path))
    whole = load_workload(path, columns={"columns": BASE}).jobs
    monkeypatch.setattr(table_reader, "BLOCK", 700)
    assert load_workload(path, columns={"columns": BASE}).jobs == whole
    assert [job.id for job in whole] == [i for _, i in sorted(((i * 7919) % 1000, i) for i in range(10000))]
    assert {job.jobspec.to_shape() for job in whole if job.procs == 3} == {"slot=3/core"}
    assert len({id(job.jobspec) for job in whole}) == 3


def test_a_run_time_without_end_is_a_reason_and_utf_16_is_named(tmp_path):
    found = read(tmp_path, HEAD + "1,100,60,4\n2,100,99999999999999999999,4\n")
    assert found.skipped_counts == {"a run time of more than 30,000 years": 1}
    (tmp_path / "wide.csv").write_bytes((HEAD + "1,100,60,4\n").encode("utf-16"))
    with pytest.raises(FormatError, match=r"wide\.csv: the text is UTF-16 \(expected UTF-8\)"):
        load_workload(tmp_path / "wide.csv", columns={"columns": BASE})
