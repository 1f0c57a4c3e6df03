"""The Grid Workload Format."""

import pytest

import simsched as ss

HEAD = "# Grid Workloads Archive\n#JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs …\n"
REST = "-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\tP1"


def record(id_, wait=5, run=100, procs=2, status=1, structure="UNITARY"):
    first = [id_, 1_100_000_000 + 60 * id_, wait, run, procs, 90.5, -1, procs, 900, 2048, status]
    return (
        "\t".join(map(str, [*first, "U7", "G1", "X1", "Q0", -1, "S1/a", "S1/b", structure, -1, REST])) + "\n"
    )


@pytest.mark.parametrize("head", [HEAD, ""])
def test_a_trace_is_recognised_and_read(tmp_path, head):
    records = [
        record(1),
        record(2, status=0, structure="BoT"),
        record(3, run=-1, status=5),
        record(4, status=3),
    ]
    (tmp_path / "trace").write_text(head + "".join(records) + "damaged\n")
    found = ss.load_workload(tmp_path / "trace")
    assert found.kind == "gwf"
    first, second = found.jobs
    assert (first.id, first.submit, first.wait, first.runtime, first.duration) == (1, 0, 5, 100, 900)
    assert (first.procs, first.memory, first.user, first.group, first.queue) == (2, 2048, "U7", "G1", "Q0")
    assert (first.status, second.status) == ("COMPLETED", "FAILED")
    assert any("bag of tasks" in note for note in found.notes)
    assert found.header["UnixStartTime"] == "1100000060"
    assert sorted(found.skipped_counts) == [
        "cancelled before it started", "not an accounting record", "partial execution record",
    ]  # fmt: skip
