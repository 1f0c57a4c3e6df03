"""The queue policy `recorded`: a run plays the starts and the nodes of a log."""

import json

import pytest

from simsched.errors import ConfigError
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.checkpoint.checkpoint import read_checkpoint
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, results, run, spans, starts, workload


def played(cluster, *jobs, **options):
    return run(cluster, *jobs, policy="recorded", **options)


def ranks(result):
    """Job → the ranks of its R."""
    lines = map(json.loads, result.log.text().splitlines())
    return {
        line["id"]: line["R"]["execution"]["R_lite"][0]["rank"] for line in lines if line["event"] == "alloc"
    }


def test_jobs_start_when_the_log_says_and_not_when_they_could():
    result = played(
        machine(2),
        job("a", 0, "slot=1/node", 10, wait=5),
        job("b", 1, "slot=2/node", 10, wait=30),
        job("c", 2, "slot=1/node", 3),
    )
    assert spans(result) == {"a": (5, 15), "b": (31, 41)}
    assert results(result)["c"] == "DROPPED"
    assert dict(zip(result.jobs["id"], result.jobs["reason"], strict=True))["c"] == (
        "the log has no start of this job"
    )


def test_a_job_that_ran_beyond_its_limit_in_the_log_runs_on_unless_it_is_told_not_to():
    jobs = (job("a", 0, "slot=1/node", 10, duration=4, wait=0),)
    assert spans(played(machine(1), *jobs)) == {"a": (0, 10)}
    assert spans(played(machine(1), *jobs, overrun="timeout")) == {"a": (0, 4)}
    assert spans(run(machine(1), *jobs)) == {"a": (0, 4)}


def test_jobs_run_on_the_nodes_that_the_log_names():
    result = played(
        machine(4, cores=2),
        job("a", 0, "slot=2/core", 10, wait=0, nodelist="n3"),
        job("b", 0, "slot=2/node", 10, wait=1, nodelist="n[0,2]"),
        job("c", 0, "slot=1/core", 10, wait=2),
    )
    assert ranks(result) == {"a": "3", "b": "0,2", "c": "1"}
    replay = result.meta["replay"]
    assert (replay["named"], replay["elsewhere"], replay["missing_nodes"]) == (2, 0, {})


def test_plain_numbers_name_ranks():
    assert ranks(played(machine(4), job("a", 0, "slot=2/node", 10, wait=0, nodelist="1,3"))) == {"a": "1,3"}


def test_a_job_whose_nodes_are_in_use_starts_on_time_elsewhere_and_is_counted():
    result = played(
        machine(2),
        job("a", 0, "slot=1/node", 10, wait=0, nodelist="n1"),
        job("b", 0, "slot=1/node", 10, wait=4, nodelist="n1"),
    )
    assert starts(result) == {"a": 0, "b": 4}
    assert result.meta["replay"]["elsewhere"] == 1


def test_nodes_that_the_machine_does_not_have_are_counted_and_named():
    result = played(
        machine(2),
        job("a", 0, "slot=1/node", 10, wait=0, nodelist="n1"),
        job("b", 0, "slot=1/node", 10, wait=4, nodelist="old[7-8]"),
        job("c", 0, "slot=1/node", 1, wait=20, nodelist="old7"),
        job("d", 0, "slot=1/node", 1, wait=20, nodelist="n["),
    )
    assert starts(result) == {"a": 0, "b": 4, "c": 20, "d": 20}
    replay = result.meta["replay"]
    assert replay["missing_nodes"] == {"old7": 2, "n[": 1, "old8": 1}
    assert (replay["missing_node_count"], replay["named"]) == (3, 1)


def test_a_log_that_uses_more_than_the_machine_is_reported_and_its_jobs_start_when_they_fit():
    result = played(
        machine(2),
        job("a", 0, "slot=1/node", 10, wait=0),
        job("b", 0, "slot=2/node", 10, wait=5),  # three nodes are in use in the log
        job("c", 0, "slot=1/node", 4, wait=6),  # fits, and started in the log, so b does not block it
    )
    assert spans(result) == {"a": (0, 10), "c": (6, 10), "b": (10, 20)}
    replay = result.meta["replay"]
    assert (replay["late"], replay["mean_delay"], replay["max_delay"], replay["latest"]) == (1, 5, 5, "b")
    assert (replay["unit"], replay["capacity"], replay["peak"], replay["peak_time"]) == ("core", 2, 4, 6)
    assert replay["over"] == 5


def test_a_late_job_goes_before_one_that_the_log_starts_later():
    result = played(
        machine(1),
        job("a", 0, "slot=1/node", 10, wait=0),
        job("later", 0, "slot=1/node", 5, wait=9),
        job("sooner", 1, "slot=1/node", 5, wait=1),
    )
    assert starts(result) == {"a": 0, "sooner": 10, "later": 15}


def test_a_start_before_the_submission_is_counted_and_comes_at_the_submission():
    result = played(
        machine(1), job("a", 10, "slot=1/node", 5, wait=-3), job("b", 0, "slot=1/node", 5, wait=0)
    )
    assert starts(result) == {"a": 10, "b": 0}
    assert result.meta["replay"]["before_submission"] == 1


def test_a_log_without_starts_is_refused():
    with pytest.raises(ConfigError, match="no recorded starts"):
        played(machine(1), job("a", 0, "slot=1/node", 5))


def test_no_jobs_are_played_as_no_jobs():
    assert played(machine(1)).meta["replay"]["jobs"] == 0


def test_only_a_run_that_plays_a_log_has_a_replay_in_its_record():
    assert "replay" not in run(machine(1), job("a", 0, "slot=1/node", 5, wait=3)).meta


def test_a_cancelled_job_and_a_requeued_job_do_not_stop_the_others():
    outages = [{"ranks": "0", "start": 5, "end": 6, "kind": "failure"}]
    result = played(
        machine(1),
        job("a", 0, "slot=1/node", 10, wait=0),
        job("b", 0, "slot=1/node", 3, wait=8, cancel_at=7),
        job("c", 0, "slot=1/node", 3, wait=20),
        outages=outages,
    )
    assert spans(result) == {"a": (6, 16), "c": (20, 23)}
    assert results(result)["b"] == "CANCELED"


def test_the_audit_holds_and_finds_a_start_before_that_of_the_log(tmp_path):
    from dataclasses import replace

    cluster = machine(3, cores=2)
    jobs = [
        job(f"j{n}", n, "slot=3/core", 7, wait=n % 5, nodelist="n[1-2]" if n % 2 else None) for n in range(20)
    ]
    result = played(cluster, *jobs)
    folder = tmp_path / "run"
    result.save(folder)
    assert audit_run(folder, cluster, workload(*jobs))
    later = [replace_wait(item, item.wait + 100) for item in jobs]
    found = audit_run(folder, cluster, replace(workload(*jobs), jobs=tuple(later)))
    assert not found
    assert "before the log starts it" in str(found)


def replace_wait(item, wait):
    import msgspec

    return msgspec.structs.replace(item, wait=wait)


def test_a_resumed_run_is_the_same(tmp_path):
    cluster = machine(3)
    jobs = [job(f"j{n}", n, "slot=1/node", 9, wait=n % 7, nodelist=f"n{n % 3}") for n in range(30)]
    file = tmp_path / "state"
    whole = simulate(cluster, workload(*jobs), "recorded", checkpoints={12: file})
    assert read_checkpoint(file).time == 12
    again = simulate(cluster, workload(*jobs), "recorded", resume=file)
    assert again.meta["replay"] == whole.meta["replay"]
    assert spans(again) == spans(whole)
    assert ranks(again) == ranks(whole)
