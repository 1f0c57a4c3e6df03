"""Flux's configuration: nodes after flux-config-resource(5), queues after RFC 33, options of Fluxion."""

import json
from functools import partial

import pytest

import simsched as ss
from simsched.errors import FormatError, LimitError
from simsched.formats.machines import recognition
from simsched.formats.machines.description import NoteCollector
from simsched.formats.machines.flux_config import read_flux_configs
from simsched.formats.machines.read import understood
from simsched.simulation.options.run_config import from_document
from tests.formats.machines.described import described

read_flux_config = partial(described, recognition.FLUX_CONFIG)

CONFIG = """\
[resource]
exclude = "c3"
norestrict = true

[[resource.config]]
hosts = "c[1-6]"
cores = "2-7"

[[resource.config]]
hosts = "c[1-2]"
gpus = "0-1"
properties = ["gpu"]

[[resource.config]]
hosts = "c[1,4-6]"
cores = "8-9"
properties = ["batch"]

[queues.batch]
requires = ["batch"]
policy.limits.duration = "8h"
policy.limits.job-size.max.nnodes = 4
policy.limits.job-size.max.ngpus = -1

[queues.debug.policy.limits]
duration = "0"

[policy.jobspec.defaults.system]
queue = "batch"
duration = "1h"

[policy.limits]
duration = "4h"
job-size.max.ngpus = -1

[sched-fluxion-qmanager]
queue-policy = "hybrid"
queue-params = "queue-depth=8192,max-queue-depth=100"
[sched-fluxion-qmanager.policy-params]
reservation-depth = 16

[sched-fluxion-resource]
match-policy = "lonodex"

[tbon]
topo = "kary:2"
"""


def texts(description, kind):
    return [f"{note.where}|{note.text}" for note in description.notes if note.kind == kind]


def test_entries_add_up_and_excluded_hosts_are_left_out():
    found = read_flux_config(CONFIG, "flux.toml")
    rows = [(g.hosts, str(g.core_ids), g.gpus, g.properties) for g in found.recipe.groups]
    assert rows == [
        (("c1",), "2-9", 2, ("gpu", "batch")),
        (("c2",), "2-7", 2, ("gpu",)),
        (("c4", "c5", "c6"), "2-9", 0, ("batch",)),
    ]
    assert texts(found, "fault") == []
    assert "flux.toml:2: resource.exclude|excluded from scheduling: c3" in texts(found, "left out")


def test_ids_from_zero_are_plain_numbers():
    text = '[[resource.config]]\nhosts = "n[0-1]"\ncores = "0-3"\n'
    (group,) = read_flux_config(text, "f").recipe.groups
    assert (group.cores, group.core_ids, group.hosts) == (4, None, ("n0", "n1"))


def test_queues_and_fluxion_become_a_configuration_that_a_run_takes():
    found = read_flux_config(CONFIG, "flux.toml")
    options = from_document(found.config)
    batch, debug = options["queues"].queues.values()
    assert (options["queue_policy"], options["queue_options"]) == (
        "hybrid",
        {"queue_depth": 100, "hybrid": {"depth": 16}},
    )
    assert (options["match_policy"], options["queues"].default) == ("lonodex", "batch")
    assert (batch.longest, batch.most["nnodes"], batch.default_duration) == (8 * 3600, 4, 3600)
    assert "ngpus" not in batch.most  # -1 lifts a limit of all queues
    assert (debug.longest, debug.most) == (float("inf"), {})


def test_defaults_of_fluxion_are_assumed():
    found = read_flux_config('[queues.a]\n[sched-fluxion-qmanager]\nqueue-policy = "easy"\n', "f")
    assert found.config["policy-options"] == {"queue-depth": 32}
    assert texts(found, "assumed") == ["f:2: sched-fluxion-qmanager|queue-depth = 32, the default of Fluxion"]
    assert read_flux_config("[queues.a]\n", "f").config == {"queues": {"a": {}}}


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ("high", "high"),
        ("policy=high node_exclusive=true set_stop_on_1_matches=true", "hinodex"),
        ("policy=low node_centric=true", "lonode"),
        ("policy=low set_stop_on_1_matches=true", "first"),
        ("policy=low set_stop_on_1_matches=true node_exclusive=true", "firstnodex"),
        ("policy=high", "high"),
    ],
)
def test_match_policies_of_fluxion(given, policy):
    found = read_flux_config(f'[queues.a]\n[sched-fluxion-resource]\nmatch-policy = "{given}"\n', "f")
    assert found.config["match-policy"] == policy


def test_limits_without_queues_are_those_of_one_queue():
    found = read_flux_config('[policy.limits]\nduration = "2h"\n', "f")
    queues = from_document(found.config)["queues"]
    assert queues.default == "default"
    assert queues.queues["default"].longest == 7200


def test_files_of_a_folder_are_one_configuration_and_the_last_value_counts():
    first = '[resource]\nexclude = "n9"\n[[resource.config]]\nhosts = "n[0-9]"\ncores = "0-1"\n'
    files = [("a.toml", first, None), ("b.toml", '[resource]\nexclude = "n[8-9]"\n', None)]
    found = understood([read_flux_configs(files, NoteCollector())])
    assert len(found.recipe.groups[0].hosts) == 8
    assert texts(found, "assumed") == ["b.toml|resource.exclude is given by several files; this one counts"]


def test_the_json_of_flux_config_get_is_the_same():
    document = {"resource": {"config": [{"hosts": "n[0-1]", "cores": "0-3"}]}, "queues": {"a": {}}}
    found = read_flux_config(document, "c.json")
    assert found.recipe.groups[0].cores == 4
    assert found.config == {"queues": {"a": {}}}


R = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-1", "children": {"core": "0-3", "gpu": "1", "nvme": "0-1"}}],
        "nodelist": ["n[0-1]"],
        "properties": {"p": "1"},
    },
}


def test_a_path_to_r_is_read_and_ranks_are_excluded():
    files = {"/etc/R": json.dumps(R)}
    text = '[resource]\npath = "/etc/R"\nexclude = "0"\n'
    found = read_flux_config(text, "f", open_file=files.__getitem__)
    (group,) = found.recipe.groups
    assert (group.hosts, group.cores, str(group.gpu_ids), group.properties) == (("n1",), 4, "1", ("p",))
    assert [(pool.type, pool.amount.size) for pool in group.pools] == [("nvme", 2)]


def test_a_path_that_cannot_be_opened_is_said():
    found = read_flux_config('[queues.a]\n[resource]\npath = "R"\n', "f")
    assert texts(found, "left out") == ["f:3: resource.path|the file R, which cannot be opened from here"]


FAULTS = {
    '[[resource.config]]\nhosts = "n1"\ncores = 4\n': ("f:3: resource.config[0].cores", "4 is not an idset"),
    '[[resource.config]]\nhosts = "n1"\ncores = "7-0"\n': ("f:3: resource.config[0].cores", "descends"),
    '[[resource.config]]\nhosts = "n[3-1]"\ncores = "0"\n': ("f:2: resource.config[0].hosts", "descends"),
    '[[resource.config]]\ncores = "0"\n': ("f:1: resource.config[0]", "an entry without hosts"),
    '[[resource.config]]\nhosts = "n1"\ncoers = "0"\n': ("f:3", "unknown key 'coers'; did you mean cores?"),
    '[[resource.config]]\nhosts = "n1"\ncores = "0"\nproperties = "p"\n': ("f:4", "not a list of properties"),
    '[[resource.config]]\nhosts = "n1"\ncores = "0"\nproperties = ["a|b"]\n': ("f:4", "forbidden character"),
    '[[resource.config]]\nhosts = "n1"\n': ("f", "hosts without cores and gpus: n1"),
    "resource = 4\n": ("f:1: resource", "not a table"),
    "[resource]\nconfig = 4\n": ("f:1: resource", "not an array of tables"),
    "[queues]\na = 4\n": ("f:2: queues.a", "not a table"),
    '[queues.a]\nrequires = "p"\n': ("f:2: queues.a.requires", "not a list of properties"),
    '[queues.a]\nparent = "b"\n': ("f:2: queues.a.parent", "not another queue"),
    '[queues.a.policy.limits]\nduration = "soon"\n': (
        "f:2: queues.a.policy.limits.duration",
        "not a duration",
    ),
    "[queues.a.policy.limits]\njob-size.max.nnodes = 1.5\n": ("f:2", "1.5 is not a number of units"),
    '[queues.a]\n[policy.jobspec.defaults.system]\nqueue = "b"\n': (
        "f:3",
        "default queue 'b' does not exist",
    ),
    '[queues.a]\n[sched-fluxion-qmanager]\nqueue-policy = "eazy"\n': ("f:2", "unknown queue policy 'eazy'"),
    '[queues.a]\n[sched-fluxion-qmanager]\nqueue-params = "queue-depth=x"\n': ("f:3", "'x' is not a value"),
    '[queues.a]\n[sched-fluxion-resource]\nmatch-policy = "best"\n': ("f:3", "unknown match policy 'best'"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_what_is_not_understood_is_a_fault_with_its_line(text):
    where, message = FAULTS[text]
    sound = (
        '\n[[resource.config]]\nhosts = "z"\ncores = "0"\n' if "config = 4" not in text else "[queues.z]\n"
    )
    sound = "\n[queues.z]\n" if text.startswith("resource") else sound
    found = read_flux_config(text + sound, "f")
    fault = next(note for note in found.notes if note.kind == "fault")
    assert fault.where.startswith(where)
    assert message in fault.text
    with pytest.raises(FormatError, match="f"):
        read_flux_config(text + sound, "f", strict=True)
    if found.config:
        from_document(found.config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "describes neither nodes nor queues"),
        ("[resource]\nx = = 1\n", "f:2: not TOML"),
        ("[resource]\nx = 1979-05-27\n", "date or time"),
        ("[resource]\nnorestrict = true\n", "describes neither nodes nor queues"),
    ],
)
def test_a_text_without_a_machine_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        read_flux_config(text, "f")


def test_a_million_hosts_and_no_more():
    with pytest.raises(LimitError):
        read_flux_config('[[resource.config]]\nhosts = "n[0-1000000]"\ncores = "0"\n', "f")
    with pytest.raises(LimitError):
        read_flux_config('[[resource.config]]\nhosts = "n"\ncores = "0-1000000"\n', "f")


def test_a_size_without_a_limit_in_a_queue_lifts_the_limit_of_all():
    text = """
    [[resource.config]]
    hosts = "n[0-3]"
    cores = "0-3"
    [policy.limits]
    job-size.max.nnodes = 2
    [queues.a]
    [queues.b.policy.limits]
    job-size.max.nnodes = -1
    """
    queues = from_document(read_flux_config(text, "f").config)["queues"].queues
    assert (queues["a"].most, queues["b"].most) == ({"nnodes": 2}, {})


def test_a_parameter_of_the_other_table_is_noted():
    text = """
    [queues.a]
    [sched-fluxion-qmanager]
    queue-policy = "hybrid"
    [sched-fluxion-qmanager.policy-params]
    queue-depth = 64
    reservation-depth = 8
    """
    found = read_flux_config(text, "f")
    assert found.config["policy-options"] == {"queue-depth": 32, "hybrid": {"depth": 8}}
    assert "the parameter queue-depth, which belongs to queue-params" in [note.text for note in found.notes]


def test_what_a_queue_refuses_is_noted(tmp_path):
    """A default above the limit, of which either may be that of all queues, and a queue without nodes."""
    path = tmp_path / "flux.toml"
    path.write_text(
        '[[resource.config]]\nhosts = "n1"\ncores = "0-3"\n[policy.limits]\nduration = "1h"\n'
        '[queues.a.policy.jobspec.defaults.system]\nduration = "2h"\n'
        '[queues.b.policy.jobspec.defaults.system]\nduration = "30m"\n[queues.c]\nrequires = ["fast"]\n'
    )
    notes = {note.text for note in ss.import_site(path).notes}
    assert notes == {
        "queue a: the default duration 2h is above the limit 1h: jobs without a duration are rejected",
        "queue c: no node has fast: its jobs never start",
    }
