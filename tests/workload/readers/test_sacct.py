"""Slurm accounting, as text and as JSON: the pitfalls of real dumps."""

from __future__ import annotations

import csv
import io
import json
import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError, WorkloadError
from simsched.workload.load import detect, load_workload
from simsched.workload.mapping import ReadOptions
from simsched.workload.readers import slurm_values as sv
from simsched.workload.readers.gather import features_of
from simsched.workload.readers.sacct import read_sacct
from simsched.workload.readers.slurm_json import read_sacct_json, read_squeue_json
from simsched.workload.save import losses, write_sacct

HEAD = (
    "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqNodes|NNodes|ReqCPUS|NCPUS|ReqTRES|ReqMem|"
    "Constraints|Partition|Account|User|JobName|State"
)
NAMES = HEAD.split("|")
GOOD = {
    "JobIDRaw": "7",
    "Submit": "2024-03-01T10:00:00",
    "Start": "2024-03-01T10:05:00",
    "End": "2024-03-01T11:05:00",
    "ElapsedRaw": "3600",
    "TimelimitRaw": "120",
    "ReqNodes": "2",
    "NNodes": "2",
    "ReqCPUS": "32",
    "NCPUS": "64",
    "ReqTRES": "cpu=32,mem=64G,node=2,billing=32",
    "ReqMem": "64G",
    "Constraints": "ib&big",
    "Partition": "batch",
    "Account": "phys",
    "User": "ann",
    "JobName": "sim",
    "State": "COMPLETED",
}


def line(**changes):
    return "|".join({**GOOD, **changes}.values())


def read(*lines, head=HEAD, **options):
    return read_sacct([head, *lines], ReadOptions(source="a.txt", **options))


def one(**changes):
    (job,) = read(line(**changes)).jobs
    return job


def test_a_line_becomes_a_job():
    job = one()
    found = {name: getattr(job, name) for name in job.__struct_fields__ if name != "jobspec"}
    assert found == {
        "id": 7,
        "submit": 0,
        "runtime": 3600,
        "duration": 7200,
        "user": "ann",
        "group": None,
        "queue": "batch",
        "bank": "phys",
        "name": "sim",
        "urgency": 16,
        "priority": None,
        "dependencies": (),
        "preceding": None,
        "think_time": None,
        "procs": 32,
        "hold": False,
        "cancel_at": None,
        "deadline": None,
        "nodes": 2,
        "memory": 2 * 1024 * 1024,  # 64 GiB over 32 processors, in KB
        "energy": None,
        "partition": "batch",
        "wait": 300,
        "status": "COMPLETED",
        "nodelist": None,
        "qos": None,
        "array_task": None,
    }
    assert job.jobspec.to_shape() == "slot=32/core"
    assert read(line()).header == {"UnixStartTime": "1709287200"}


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n[1-2,7]", "n[1-2,7]"),
        ("r[0-1]n[1-2],x[3]", "r[0-1]n[1-2],x[3]"),
        ("", None),
        ("None assigned", None),
        ("(null)", None),
    ],
)
def test_the_nodes_on_which_a_job_ran_are_kept(text, hosts):
    (job,) = read(f"{line()}|{text}", head=f"{HEAD}|NodeList").jobs
    assert job.nodelist == hosts


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"TimelimitRaw": "UNLIMITED"}, "duration", None),
        ({"TimelimitRaw": "Partition_Limit"}, "duration", None),
        ({"TimelimitRaw": ""}, "duration", None),
        ({"State": "CANCELLED by 1234"}, "status", "CANCELED"),
        ({"State": "OUT_OF_MEMORY"}, "status", "FAILED"),
        ({"State": "TIMEOUT"}, "status", "TIMEOUT"),
        ({"ReqCPUS": "0"}, "procs", 32),  # from ReqTRES
        ({"ReqCPUS": "", "ReqTRES": ""}, "procs", 64),  # from NCPUS
        ({"ReqMem": "4000Mc"}, "memory", 4096000),
        ({"ReqMem": "16Gn"}, "memory", 1048576),
        ({"ReqMem": ""}, "memory", 2097152),
        ({"JobIDRaw": "7_3"}, "id", "7_3"),
        ({"ElapsedRaw": ""}, "runtime", 3600),  # End - Start
        ({"ElapsedRaw": "0"}, "runtime", 0),
        ({"User": ""}, "user", None),
    ],
)
def test_pitfalls_that_are_kept(changes, field, value):
    assert getattr(one(**changes), field) == value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"State": "PENDING", "Start": "Unknown", "End": "Unknown"}, "never started"),
        ({"State": "RUNNING", "End": "Unknown"}, "still running when the log was taken"),
        ({"State": "CANCELLED by 5", "Start": "None", "ElapsedRaw": "0"}, "cancelled before it started"),
        ({"State": "CANCELLED", "ElapsedRaw": "0"}, "cancelled before it started"),
        ({"State": "FAILED", "Start": "Unknown"}, "never started"),
        ({"Submit": "Unknown"}, "no submit time"),
        ({"Submit": "yesterday"}, "no submit time"),
        ({"Submit": "2024-13-01T10:00:00"}, "no submit time"),
        ({"Submit": "2024-03-01T10:61:00"}, "no submit time"),
        ({"Start": "2024-03-01T10#05:00"}, "never started"),
        ({"ReqCPUS": "0", "NCPUS": "0", "ReqTRES": ""}, "no processors"),
        ({"ReqCPUS": "2.5K", "NCPUS": "2.5K", "ReqTRES": ""}, "no processors"),
        ({"ElapsedRaw": "", "End": "2024-03-01T09:00:00"}, "ends before it starts"),
        ({"Start": "2024-03-01T09:00:00"}, "starts before it is submitted"),
    ],
)
def test_records_that_are_left_out_say_why(changes, reason):
    workload = read(line(), line(JobIDRaw="8", **changes))
    assert [(s.where, s.reason, s.id) for s in workload.skipped] == [("a.txt:3", reason, 8)]
    assert workload.total_records == 2


def test_steps_are_counted_and_not_listed():
    lines = [line(), *(line(JobIDRaw=f"7.{step}") for step in ("batch", "extern", "0"))]
    workload = read(*lines)
    assert (len(workload), workload.total_records) == (1, 4)
    assert workload.skip_table() == [("a step, not a job", 3, "")]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"JobName": "a|b"}, "a|b"),
        ({"JobName": "|"}, "|"),
        ({"JobName": "make -j | tee log | wc", "Constraints": "ib|big|huge"}, "make -j | tee log | wc"),
        ({"JobName": "two\nlines"}, "two\nlines"),
        ({"JobName": "a|b\n\n2024|c\n", "Constraints": "ib|big"}, "a|b\n2024|c\n"),
        ({"JobName": "8|2024-03-01T10:00:00"}, "8|2024-03-01T10:00:00"),
    ],
)
@pytest.mark.parametrize("end", ["", "|"])
def test_free_text_may_hold_the_delimiter_and_line_breaks(changes, name, end):
    rows = [line(), line(JobIDRaw="8", **changes), line(JobIDRaw="9")]
    lines = "\n".join(text + end for text in rows).splitlines()
    workload = read(*lines, head=HEAD + end)
    jobs = {job.id: job for job in workload}
    assert sorted(jobs) == [7, 8, 9]
    assert (jobs[8].name, jobs[8].user, jobs[8].procs) == (name, "ann", 32)
    assert workload.skipped == ()
    assert workload.notes[0].startswith("records put together")
    assert workload.notes[0].endswith(": 1")
    assert workload.total_records == 3


def test_a_feature_expression_with_a_pipe_is_read_whole():
    lines = line(), line(JobIDRaw="8", Constraints="ib|big")
    workload = read(*lines, constrain=frozenset(["features"]))
    assert str(workload.jobs[1].jobspec.constraint) == "ib or big"


def test_of_two_readings_the_one_with_known_hosts_is_taken():
    head = "JobIDRaw|Submit|Elapsed|NCPUS|State|JobName|NodeList|Priority|Reason"
    rows = [f"{id_}|2024-03-01T10:00:00|01:00|4|COMPLETED|{name}|cn[1-2]|100|None"
            for id_, name in ((1, "a"), (2, "b|c"))]  # fmt: skip
    workload = read(*rows, head=head)
    assert [(job.id, job.name, job.nodelist) for job in workload] == [
        (1, "a", "cn[1-2]"),
        (2, "b|c", "cn[1-2]"),
    ]
    assert workload.skipped == ()


def test_a_record_with_one_reading_is_counted_as_put_together():
    head = "JobIDRaw|JobName|Submit|Elapsed|NCPUS|State"
    lines = [f"{id_}|{name}|2024-03-01T10:00:00|60|4|COMPLETED" for id_, name in ((1, "a"), (2, "b|c"))]
    workload = read(*(line.replace("|60|", "|01:00|") for line in lines), head=head)
    assert [(job.id, job.name) for job in workload] == [(1, "a"), (2, "b|c")]
    assert [note[-3:] for note in workload.notes] == [": 1"]


def test_what_cannot_be_put_together_is_counted_and_listed():
    """A line that is cut short, one with two readings, and one too many without free text."""
    head = "JobIDRaw|Submit|Elapsed|NCPUS|Account|JobName|Group|Comment|State"
    good = "7|2024-03-01T10:00:00|01:00:00|4|a|n|g|c|COMPLETED"
    lines = [
        good,
        "8|2024-03-01T10:00:00|01:00:00|4|a",
        good.replace("7|", "9|", 1),
        good.replace("7|", "10|", 1).replace("|n|g|", "|n|x|y|"),
        good.replace("7|", "11|", 1),
    ]
    workload = read(*lines, head=head)
    assert [job.id for job in workload] == [7, 9, 11]
    assert workload.skip_table() == [("number of columns differs from the header", 2, "a.txt:3, 5")]
    with pytest.raises(WorkloadError, match=r"a.txt:3: record refused: number of columns differs"):
        read(*lines, head=head, strict=True)


def test_many_odd_lines_do_not_take_for_ever():
    head = HEAD + "|Comment|WorkDir|SubmitLine|AdminComment"
    odd = f"{line(JobIDRaw='x')}|{'|' * 12}"
    began = time.process_time()
    workload = read(*[odd] * 3000, head=head)
    assert time.process_time() - began < 30
    assert workload.skipped_counts == {"number of columns differs from the header": 3000}


def test_a_trailing_delimiter_is_no_column():
    workload = read(line(), line(JobIDRaw="9") + "|")
    assert [job.id for job in workload] == [7, 9]


@pytest.mark.parametrize("mark", [",", ";", "\t", "^", "@", "~", "|||", "^|^"])
def test_the_header_says_what_is_between_the_columns(mark, tmp_path):
    path = tmp_path / "dump"
    path.write_text("\n".join(text.replace("|", mark) for text in (HEAD, line(), line(JobIDRaw="8"))))
    workload = load_workload(path)
    assert (workload.kind, [job.id for job in workload]) == ("sacct", [7, 8])
    assert workload.jobs == read(line(), line(JobIDRaw="8")).jobs


def test_lists_between_commas_are_put_together():
    head = "JobID,Submit,Elapsed,ReqTRES,AllocTRES,Partition,State"
    lists = "billing=4,cpu=4,mem=8G,node=1", "billing=4,cpu=8,gres/gpu=2,mem=8G,node=1"
    rows = [
        f"{n},2024-03-01T10:00:00,01:00,{a},{b},p,COMPLETED" for n, (a, b) in enumerate(product(lists, lists))
    ]
    workload = read(*rows, head=head)
    assert [(job.procs, job.jobspec.to_shape()) for job in workload] == [
        (4, "slot=4/core"),
        (4, "slot=2/[core=2;gpu]"),
        (8, "slot=2/[core=4;gpu]"),
        (8, "slot=2/[core=4;gpu]"),
    ]


def test_a_table_with_quotes():
    cells = {**GOOD, "JobName": 'a,"b"', "JobIDRaw": "7"}
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([list(cells), list(cells.values())])
    lines = text.getvalue().splitlines()
    (job,) = read_sacct(lines, ReadOptions(source="a.csv")).jobs
    assert (job.name, job.procs, job.nodes) == ('a,"b"', 32, 2)


def test_a_dump_without_a_header_needs_the_names_of_its_columns(tmp_path):
    path = tmp_path / "dump"
    path.write_text("\n".join([line(), line(JobIDRaw="8")]))
    with pytest.raises(FormatError, match=r"looks like a Slurm dump without its header line.*--columns"):
        load_workload(path)
    columns = ",".join(f"{name}%30" for name in NAMES)
    assert load_workload(path, columns=columns).jobs == read(line(), line(JobIDRaw="8")).jobs
    assert load_workload(path, columns="|".join(NAMES)).jobs == read(line(), line(JobIDRaw="8")).jobs
    path.write_text(f"{HEAD}\n{line()}")
    assert len(load_workload(path, columns=columns)) == 1  # the header is no record
    path.write_text(line().replace("|", ";;"))
    assert len(load_workload(path, columns=columns, delimiter=";;")) == 1
    path.write_text(line().replace("|", "\t"))
    assert len(load_workload(path, columns=columns, delimiter="\\t")) == 1
    with pytest.raises(
        WorkloadError, match=r"dump: columns are missing: Submit.*expected columns as sacct -o"
    ):
        load_workload(path, columns="JobID,NCPUS,Elapsed")


def test_what_sacct_prints_for_people_is_refused(tmp_path):
    path = tmp_path / "dump"
    path.write_text(
        "JobID           JobName  Partition    State\n------- ---------- ---------- -----\n1   a  b  C\n"
    )
    with pytest.raises(WorkloadError, match=r"dump:1: .*for people.*expected the output of sacct -P"):
        load_workload(path)


@pytest.mark.parametrize(
    ("head", "row", "found"),
    [
        ("End|Elapsed", "2024-03-01T12:00:00|01:00:00", (3600, 3600)),
        ("ElapsedRaw", "60", (60, None)),
        ("End|ElapsedRaw", "2024-03-01T10:00:30|60", (60, None)),  # the ends of a clock that was set back
        ("Start|End", "2024-03-01T11:00:00|2024-03-01T11:00:05", (5, 3600)),
        ("Elapsed", "00:00:00", (0, None)),
    ],
)
def test_a_dump_needs_no_start(head, row, found):
    """The run time alone makes a job; where the end is known, the start is the run time before it."""
    none = "|".join("00:00:00" if name == "Elapsed" else "0" for name in head.split("|"))
    whole = read(
        f"7|2024-03-01T10:00:00|4|COMPLETED|{row}",
        f"8|2024-03-01T10:00:00|4|CANCELLED by 5|{none}",
        "9|2024-03-01T10:00:00|4|PENDING|" + "|".join("Unknown" for _ in head.split("|")),
        head=f"JobID|Submit|NCPUS|State|{head}",
    )
    assert [(job.id, job.runtime, job.wait) for job in whole] == [(7, *found)]
    assert whole.skipped_counts == {"cancelled before it started": 1, "never started": 1}


def test_a_start_alone_is_no_run_time():
    with pytest.raises(WorkloadError, match="columns are missing: ElapsedRaw, Elapsed, or Start and End"):
        read(head="JobID|Submit|NCPUS|Start|State")
    with pytest.raises(WorkloadError, match="columns are missing: ElapsedRaw, Elapsed, or Start and End"):
        read(head="JobID|Submit|NCPUS|End|State")


@pytest.mark.parametrize(
    ("head", "row", "shape"),
    [
        ("AllocGRES", "gpu:4", "slot=4/[core=8;gpu]"),
        ("ReqGRES", "gpu:2", "slot=4/[core=8;gpu]"),  # per node, of which there are two
        ("ReqGRES|AllocGRES", "gpu:1|gpu:8", "slot=8/[core=4;gpu]"),
        ("ReqGRES|AllocGRES", "gpu:a100:1|", "slot=2/[core=16;gpu]"),
        ("AllocGRES", "gres:gpu:a100:2(S:0-1),nvme:1", "slot=2/[core=16;gpu]"),
        ("AllocGRES", "craynetwork:1", "slot=32/core"),
        ("AllocTRES|AllocGRES", "cpu=32,gres/gpu:v100=2|gpu:8", "slot=2/[core=16;gpu]"),
        ("NGPUS", "2", "slot=2/[core=16;gpu]"),
    ],
)
def test_gpus_in_every_column_that_has_them(head, row, shape):
    (job,) = read(f"{line()}|{row}", head=f"{HEAD}|{head}").jobs
    assert job.jobspec.to_shape() == shape


def test_what_the_requests_leave_out_is_said():
    def note(**options):
        workload = read(line(ReqTRES="cpu=32,mem=64G,node=2,gres/gpu=4"), **options)
        return " ".join(workload.notes)

    every = ("node counts", "memory", "partitions", "features")
    assert all(word in note() for word in every)
    assert "gpus" not in note()
    assert "gpus ({gpus} or {gpn} in --map)" in note(maps="slot={procs}/core")
    assert "gpus" not in note(maps="node={nodes}/slot={gpn}/[core;gpu]")
    everything = "node={nodes}/slot={gpn}/[core={cpg};gpu;memory={mem}]"
    assert note(maps=everything, constrain=frozenset(["partition", "features"])) == ""
    assert "partitions" not in note(maps=("slot={procs}/core", "batch -> slot={gpus}/gpu"))
    assert "gpus" not in note(maps=("slot={procs}/core", "batch -> slot={gpus}/gpu"))
    assert "gpus" in note(maps=("slot={procs}/core", "other -> slot={gpus}/gpu"))
    bare = read(line(ReqTRES="", ReqMem="", ReqNodes="", NNodes="", Partition="", Constraints=""))
    assert bare.notes == ()


def test_strict():
    with pytest.raises(WorkloadError, match=r"a.txt:2: record refused: no submit time"):
        read(line(Submit="Unknown"), strict=True)
    assert len(read(line(JobIDRaw="7.batch"), line(), strict=True)) == 1  # a step is no record of a job


def test_missing_columns_are_named():
    with pytest.raises(
        WorkloadError, match=r"a.txt:1: columns are missing: Submit; ElapsedRaw, Elapsed, or Start"
    ):
        read(head="JobID|NCPUS|State")
    with pytest.raises(WorkloadError, match="columns are missing: JobIDRaw; Submit; ReqCPUS"):
        read_sacct([])


def test_other_columns_say_the_same():
    head = "JobID|Submit|Elapsed|Timelimit|AllocTRES|Start|State"
    row = (
        "5_1|2024-03-01T10:00:00|1-02:00:00|2-00:00:00|cpu=8,gres/gpu=2,node=1|2024-03-01T10:00:00|COMPLETED"
    )
    (job,) = read(row, head=head).jobs
    assert (job.id, job.runtime, job.duration, job.procs) == ("5_1", 93600, 172800, 8)
    assert job.jobspec.to_shape() == "slot=2/[core=4;gpu]"


def test_times_with_offsets_are_moved_to_one_clock_and_mixtures_are_refused():
    winter = {"Start": "2024-03-01T11:05:00+0100", "Submit": "2024-03-01T10:00:00+0000"}
    assert one(**winter, End="2024-03-01T12:05:00+01:00").wait == 300
    with pytest.raises(WorkloadError, match=r"mixed time zones: line 2 has an offset, line 2 has none"):
        one(Submit="2024-03-01T10:00:00+0000")
    epochs = {"Submit": "1709287200", "Start": "1709287260", "End": "1709290860"}
    assert one(**epochs).wait == 60


def test_constraints_from_features_and_partition():
    found = {
        what: str(read(line(), constrain=frozenset(what.split())).jobs[0].jobspec.constraint)
        for what in ("features", "partition", "features partition")
    }
    assert found == {
        "features": "ib and big",
        "partition": "batch",
        "features partition": "ib and big and batch",
    }
    odd = read(line(Constraints="[rack1*4]"), constrain=frozenset(["features"]))
    assert odd.skip_table() == [("a feature expression that no constraint can express", 1, "a.txt:2")]


def test_maps_by_partition():
    maps = ("slot={procs}/core", "batch -> node={nodes}/slot/core={ppn}")
    assert read(line(), maps=maps).jobs[0].jobspec.to_shape() == "node=2/slot/core=16"


def test_detection_and_limit(tmp_path):
    path = tmp_path / "dump"
    path.write_text("\n".join([HEAD, *(line(JobIDRaw=str(n)) for n in range(10))]))
    assert detect(HEAD) == "sacct"
    assert len(load_workload(path)) == 10
    assert len(load_workload(path, limit=3)) == 3


@given(
    st.lists(
        st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)), max_size=60),
        max_size=5,
    )
)
def test_no_line_breaks_the_reader(lines):
    """Whatever stands in a dump, records read and left out add up to its lines."""
    workload = read(*lines)
    assert workload.total_records == sum(bool(text.strip()) for text in lines)


@given(
    st.dictionaries(
        st.sampled_from(NAMES), st.sampled_from(["", "0", "-1", "1e9", "Unknown", "nan", "9" * 30, "\x00"])
    )
)
def test_no_cell_breaks_the_reader(changes):
    assert read(line(**changes)).total_records == 1


# ------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:01:00", 60),
        ("1-00:00:00", 86400),
        ("5:30", 330),
        ("01:00:00.500", 3600),
        ("", None),
        ("1:2:3:4", None),
    ],
)
def test_clocks(text, seconds):
    assert sv.clock(text) == seconds


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a", "a"), ("a&b", "a and b"), ("a,b", "a and b"), ("a|b", "a or b"), ("a&b|c", "a and b or c"),
     ("", "None"), ("!a", "None"), ("(a|b)&c", "None"), ("a&", "None")],
)  # fmt: skip
def test_features(text, shown):
    assert str(features_of(text)) == shown


# ------------------------------------------------------------ JSON


def number(value):
    return {"set": value is not None, "infinite": False, "number": value or 0}


def document(**changes):
    job = {
        "job_id": 7,
        "name": "sim",
        "user": "ann",
        "group": "staff",
        "account": "phys",
        "partition": "batch,long",
        "constraints": "ib",
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {
            "submission": 1709287200,
            "start": 1709287500,
            "end": 1709291100,
            "elapsed": 3600,
            "limit": number(120),
        },
        "required": {"CPUs": 32, "memory_per_cpu": number(2000), "memory_per_node": number(None)},
        "tres": {"requested": [{"type": "cpu", "name": "", "id": 1, "count": 32}], "allocated": []},
        "allocation_nodes": 2,
        "steps": [{"anything": 1}],
    }
    job.update(changes)
    return json.dumps({"meta": {}, "errors": [], "jobs": [job]})


def test_the_json_says_what_the_text_says():
    (job,) = read_sacct_json(document()).jobs
    assert (job.id, job.submit, job.wait, job.runtime, job.duration) == (7, 0, 300, 3600, 7200)
    assert (job.procs, job.nodes, job.memory, job.queue) == (32, 2, 2000 * 1024, "batch")
    assert (job.user, job.group, job.bank, job.status) == ("ann", "staff", "phys", "COMPLETED")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "COMPLETED"}, "COMPLETED"),
        ({"state": {"current": "FAILED"}}, "FAILED"),
        ({"state": {"current": ["CANCELLED by 5"]}}, "CANCELED"),
    ],
)
def test_generations_of_state(changes, expected):
    assert read_sacct_json(document(**changes)).jobs[0].status == expected


def test_generations_of_numbers_and_gpus():
    parts = [
        ("gres", "gpu:a100", 2),
        ("gres", "gpu:v100", 2),
        ("cpu", "", 8),
        ("node", "", 1),
        ("mem", "", 8000),
    ]
    tres = {"requested": [{"type": kind, "name": name, "count": count} for kind, name, count in parts]}
    times = {
        "submission": 10,
        "start": 20,
        "elapsed": 5,
        "limit": {"set": True, "infinite": True, "number": 0},
    }
    (job,) = read_sacct_json(document(tres=tres, required={}, time=times)).jobs
    assert job.jobspec.to_shape() == "slot=4/[core=2;gpu]"
    assert (job.duration, job.memory, job.nodes) == (None, 1000 * 1024, 1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": {"current": ["PENDING"]}, "time": {"submission": 5, "start": 0}}, "never started"),
        ({"state": {"current": ["RUNNING"]}}, "still running when the log was taken"),
        ({"time": {"submission": 0, "start": 5, "elapsed": 1}}, "no submit time"),
        ({"required": {}, "tres": {}}, "no processors"),
    ],
)
def test_json_records_that_are_left_out(changes, reason):
    workload = read_sacct_json(document(**changes))
    assert [skip.reason for skip in workload.skipped] == [reason]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "jobs"),
        ('{"jobs": [{"job_id": "x"}]}', r"expected `int \| null`.*jobs\[0\].job_id|int"),
        ('{"jobs": [{}]}', "no job has a job_id"),
    ],
)
def test_what_is_no_sacct_document(text, message):
    with pytest.raises((FormatError, WorkloadError), match=message):
        read_sacct_json(text, ReadOptions(source="a.json"))


def test_detection_of_json():
    assert detect(document()) == "sacct-json"
    assert detect(json.dumps(json.loads(document()), indent=1)) == "sacct-json"


@pytest.mark.parametrize(
    ("eligible", "found"),
    [
        ("2024-03-01T10:00:00", []),
        ("2024-03-01T10:03:00", ["begin-time:180"]),
        ("2024-03-01T09:00:00", []),  # before the submission
        ("2024-03-01T10:06:00", []),  # after the start
        ("Unknown", []),
        ("", []),
    ],
)
def test_a_job_does_not_start_before_it_is_eligible(eligible, found):
    """Held, waiting for another or for its time: the dump does not say which, only until when."""
    job = read(f"{line()}|{eligible}", head=f"{HEAD}|Eligible").jobs[0]
    assert list(map(str, job.dependencies)) == found
    assert job.wait == 300
    workload = read(f"{line()}|{eligible}", head=f"{HEAD}|Eligible")
    again = read_sacct(write_sacct(workload), ReadOptions(source="again"))
    assert again.jobs[0].dependencies == job.dependencies
    assert "dependencies" not in losses(workload, "sacct")


# ------------------------------------------------------------ squeue


def queued(**changes):
    job = {
        "job_id": 7,
        "job_state": ["COMPLETED"],
        "submit_time": number(1000),
        "eligible_time": number(1000),
        "start_time": number(1100),
        "end_time": number(1400),
        "time_limit": number(60),
        "cpus": number(32),
        "node_count": number(2),
        "memory_per_node": number(64000),
        "tres_req_str": "cpu=32,mem=125G,node=2,billing=32",
        "tres_alloc_str": "cpu=64,mem=125G,node=2",
        "tres_per_node": "gres/gpu:2",
        "partition": "batch,long",
        "user_name": "ann",
        "group_name": "staff",
        "account": "phys",
        "name": "sim",
        "features": "",
    }
    return {**job, **changes}


def squeue(*jobs):
    return json.dumps({"meta": {"slurm": {"version": {"major": "23"}}}, "jobs": list(jobs)}, indent=1)


def test_a_queue_of_slurm_is_no_accounting(tmp_path):
    path = tmp_path / "q.json"
    states = [["COMPLETED"], ["PENDING"], ["RUNNING"], ["FAILED"], "TIMEOUT", ["CANCELLED"]]
    jobs = [queued(job_id=number, job_state=state) for number, state in enumerate(states)]
    jobs[-1].update(start_time=number(0))
    path.write_text(squeue(*jobs))
    workload = load_workload(path)
    assert workload.kind == "squeue-json"
    assert [(job.id, job.status) for job in workload] == [(0, "COMPLETED"), (3, "FAILED"), (4, "TIMEOUT")]
    assert workload.skipped_counts == {
        "still waiting when the queue was listed": 1,
        "still running when the log was taken": 1,
        "cancelled before it started": 1,
    }
    assert "2 jobs of this queue wait or run" in workload.notes[0]
    job = workload.jobs[0]
    assert (job.submit, job.wait, job.runtime, job.duration) == (0, 100, 300, 3600)
    assert (job.user, job.group, job.bank, job.queue, job.name) == ("ann", "staff", "phys", "batch", "sim")
    assert (job.procs, job.nodes, job.memory) == (32, 2, 4096000)
    assert job.jobspec.to_shape() == "slot=4/[core=8;gpu]"


@pytest.mark.parametrize("text", ['{"jobs": [{"job_state": 5}]}', '{"jobs": [5]}', '{"job_state": 1}'])
def test_what_is_no_queue_of_slurm(text):
    with pytest.raises(FormatError):
        read_squeue_json(text, ReadOptions(source="q.json"))
