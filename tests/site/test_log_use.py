"""The use of a log on a site: queues, memory, whole cores, limits, and the sentence that says so."""

from __future__ import annotations

import re

import pytest

from simsched.errors import ConfigError
from simsched.formats.cluster.recipe import parse_recipe
from simsched.formats.machines.description import MachineDescription
from simsched.site.import_site import site_of
from simsched.site.log_use import reading_on, site_maps, use_sentence
from simsched.workload.load import load_workload

HEAD = "JobID|Partition|State|Submit|Start|End|TimelimitRaw|ReqNodes|ReqCPUS|ReqTRES|ReqMem"
DAY = "2026-01-05T"


def record(number, partition, cpus, *, memory="", gpus=0, limit="60"):
    tres = f"cpu={cpus}" + (f",gres/gpu={gpus}" if gpus else "")
    times = f"{DAY}00:00:0{number}|{DAY}00:01:00|{DAY}00:02:00"
    return f"{number}|{partition}|COMPLETED|{times}|{limit}|1|{cpus}|{tres}|{memory}"


@pytest.fixture
def log(tmp_path):
    rows = [
        record(1, "batch", 3, memory="6000M"),
        record(2, "batch", 4, limit="UNLIMITED"),
        record(3, "gpu", 8, memory="8G", gpus=2),
        record(4, "old", 1),
    ]
    path = tmp_path / "jobs.sacct"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def site(*, memory="64000 MiB", gpu_memory="64000 MiB", config=None, cpus_per_core=1):
    groups = [
        {"name": "n", "count": 2, "cores": 8, "properties": ["batch"]},
        {"name": "g", "count": 1, "cores": 8, "gpus": 4, "properties": ["gpu"]},
    ]
    for group, amount in zip(groups, (memory, gpu_memory), strict=True):
        group.update({"memory": amount} if amount else {})
    queues = {
        "batch": {"requires": ["batch"], "policy": {"limits": {"duration": "1d"}}},
        "gpu": {"requires": ["gpu"], "policy": {"jobspec": {"defaults": {"system": {"duration": "2h"}}}}},
    }
    found = {"queues": queues} if config is None else config
    machine = MachineDescription(
        recipe=parse_recipe({"groups": groups}), config=found, cpus_per_core=cpus_per_core
    )
    return site_of(machine, [])


def jobs_on(log, where):
    return load_workload(log, on_site=reading_on(where))


def shapes(workload):
    return {job.id: job.jobspec.to_shape() for job in workload}


def test_memory_is_requested_where_the_log_and_the_nodes_have_it(log):
    found = shapes(jobs_on(log, site()))
    assert found[1] == "slot=3/[core;memory=2000{unit:MiB}]"
    assert found[2] == "slot=4/core"
    assert found[3] == "slot=2/[core=4;gpu;memory=4096{unit:MiB}]"


def test_memory_is_requested_in_the_queues_whose_nodes_all_have_it(log):
    found = shapes(jobs_on(log, site(gpu_memory=None)))
    assert found[1] == "slot=3/[core;memory=2000{unit:MiB}]"
    assert found[3] == "slot=2/[core=4;gpu]"


def test_a_job_that_requests_all_memory_of_a_node_fits_on_it(tmp_path):
    """With the share of each of 7 processors rounded up, 64000 MB would be 64001."""
    path = tmp_path / "jobs.sacct"
    path.write_text(f"{HEAD}\n{record(1, 'batch', 7, memory='64000M')}\n")
    where = site()
    (job,) = jobs_on(path, where)
    from simsched.match.matcher import Matcher

    assert Matcher(where.cluster).satisfiable(job.jobspec)


def test_without_memory_the_usual_maps_apply(log):
    assert site_maps(site(memory=None, gpu_memory=None)) == ()
    assert shapes(jobs_on(log, site(memory=None, gpu_memory=None))) == shapes(load_workload(log))


def test_processors_that_are_threads_make_whole_cores(log):
    found = jobs_on(log, site(cpus_per_core=2))
    assert shapes(found) == {
        1: "slot=2/[core;memory=3000{unit:MiB}]",
        2: "slot=2/core",
        3: "slot=2/[core=2;gpu;memory=4096{unit:MiB}]",
        4: "slot/core",
    }


def test_a_map_of_the_user_takes_the_place_of_the_site_s(log):
    found = load_workload(log, map="slot={procs}/core", on_site=reading_on(site(cpus_per_core=2)))
    assert shapes(found)[1] == "slot=3/core"


def test_a_job_without_a_limit_has_that_of_its_queue_and_not_the_default(log, tmp_path):
    durations = {job.id: job.duration for job in jobs_on(log, site())}
    assert durations == {1: 3600, 2: 86400, 3: 3600, 4: 3600}
    path = tmp_path / "more.sacct"
    path.write_text(f"{HEAD}\n{record(1, 'gpu', 1, limit='UNLIMITED')}\n{record(2, '', 1, limit='')}\n")
    by_id = {job.id: job.duration for job in jobs_on(path, site())}
    assert by_id == {1: 365 * 86400, 2: None}


def test_the_sentence_names_the_use_of_each_part(log):
    where = site(cpus_per_core=2)
    assert use_sentence(where, jobs_on(log, where)) == (
        "a job's partition is its queue and restricts its nodes (batch, gpu); "
        "1 job of a partition that the site does not have is rejected (old); 2 processors are a core; "
        "memory is requested; node counts are left out ({nodes} and {ppn} in --map request them); "
        "gpus are requested"
    )


@pytest.mark.parametrize(
    ("where", "map_", "part"),
    [
        (site(config={}), None, "partitions are left out (the site has no queues)"),
        (site(memory=None, gpu_memory=None), None, "memory is left out (the nodes of the site have none)"),
        (site(), "slot={procs}/core", "memory is left out (the map does not request it)"),
        (site(), "slot={procs}/core", "gpus are left out ({gpus} in --map requests them)"),
        (site(), "node={nodes}/slot={ppn}/core", "node counts are requested"),
    ],
)
def test_the_sentence_says_what_is_left_out_and_why(log, where, map_, part):
    workload = load_workload(log, map=map_, on_site=reading_on(where))
    assert part in use_sentence(where, workload, mapped=map_ is not None).split("; ")


def test_a_machine_that_counts_memory_in_gigabytes_does_not_get_rounded_requests(log, tmp_path):
    from simsched.site.site_folder import load_site

    (tmp_path / "cluster.yaml").write_text("groups: [{name: n, count: 2, cores: 8, memory: 64 GB}]\n")
    (tmp_path / "queues.toml").write_text("")
    where = load_site(tmp_path)
    assert site_maps(where) == ()
    assert "memory is left out (the site counts memory in GB, MB or MiB is needed)" in use_sentence(
        where, jobs_on(log, where)
    )


@pytest.mark.parametrize(
    ("on_site", "message"),
    [
        (5, "on_site: 5 is not a table (expected maps, limits"),
        ({"map": []}, "on_site: unknown key 'map'; did you mean maps?"),
        ({"maps": "slot={procs}/core"}, "on_site.maps: 'slot={procs}/core' is not a list of maps"),
        ({"limits": {"batch": "long"}}, "on_site.limits.batch: 'long' is not a number"),
        ({"default_queue": 7}, "on_site.default_queue: 7 is not a name"),
        ({"maps": ["slot={proc}/core"]}, "unknown placeholder"),
    ],
)
def test_a_reading_that_is_not_one_is_refused(log, on_site, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_workload(log, on_site=on_site)
