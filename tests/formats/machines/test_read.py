"""Site files by their content, several of one machine together, and texts that are no such file."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import FormatError, SimschedError
from simsched.formats.cluster.recipe import parse_recipe, recipe_document
from simsched.formats.machines import recognition
from simsched.formats.machines.read import (
    FORMATS,
    describe_document,
    describe_text,
)
from simsched.simulation.options.run_config import from_document
from tests.formats.machines.described import described, read_description

FLUX = '# made by hand\n[[resource.config]]\nhosts = "n[0-3]"\ncores = "0-3"\n[queues.a]\nrequires = ["a"]\n'
LIST = "     STATE NNODES   NCORES NODELIST\n      free      4       16 n[0-3]\n"
STATUS = "     STATE UP NNODES NODELIST\n     avail  ✔      3 n[0-2]\n   drained  ✔      1 n3\n"
PBS = "n0\n     Mom = n0\n     state = free\n     resources_available.ncpus = 4\n"
QMGR = "create queue a\nset queue a enabled = True\nset queue a resources_max.walltime = 01:00:00\n"
HWLOC = (
    '<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">'
    '<object type="Machine"><object type="Core"/></object></topology>\n'
)
PLATFORM = '<!DOCTYPE platform SYSTEM "simgrid.dtd">\n<platform><host id="n0" core="4"/></platform>\n'
EXAMPLES = {
    recognition.FLUX_CONFIG: FLUX,
    recognition.FLUX_LIST: LIST,
    recognition.FLUX_STATUS: STATUS,
    recognition.PBSNODES: PBS,
    recognition.QMGR: QMGR,
    recognition.HWLOC: HWLOC,
    recognition.PLATFORM: PLATFORM,
    recognition.SLURM_CONF: "# slurm.conf\n\nClusterName=lab\nNodeName=n[0-3] CPUs=4\n",
    recognition.SCONTROL: "NodeName=n0 Arch=x86_64 CoresPerSocket=4 \n   CPUAlloc=0 CPUEfctv=8 CPUTot=8\n",
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_kind_is_recognised(kind):
    assert list(recognition.machine_parts(EXAMPLES[kind])) == [kind]
    assert kind in FORMATS


@pytest.mark.parametrize("text", [FLUX, LIST, STATUS, PBS, HWLOC, PLATFORM])
def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(text):
    other = describe_text("\ufeff" + text.replace("\n", "\r\n"), "file")
    assert other.recipe == describe_text(text, "file").recipe


def test_a_file_without_nodes_names_the_fault_that_may_be_the_reason():
    with pytest.raises(FormatError, match=r"f:2: resource.config\[0\].hosts: the range '3-1' descends"):
        describe_text('[[resource.config]]\nhosts = "n[3-1]"\ncores = "0"\n', "f")


@pytest.mark.parametrize("text", [FLUX, LIST, STATUS, PBS, HWLOC, PLATFORM])
def test_a_description_is_written_and_read_as_a_recipe(text):
    recipe = describe_text(text, "file").recipe
    again = parse_recipe(recipe_document(recipe))
    assert again.groups == recipe.groups


@pytest.mark.parametrize(
    "text",
    [
        "",
        "groups:\n- {name: n, count: 2, cores: 4}\n",
        "description: |\n  ClusterName=x\n  [resource]\ngroups:\n- {name: n, count: 2}\n",
        "<graphml>\nClusterName=x\n</graphml>",
        "jobs:\n  - {shape: slot=1/core}\n",
        '{"groups": []}',
        "; MaxProcs: 4\n1 0 5 3600 4\n",
        "JobID|State|NodeList\n",
        "['resource']\n",
        "state = 4\n",
    ],
)
def test_other_texts_are_none_of_them(text):
    assert describe_text(text, "file") is None


def test_documents_are_told_by_their_keys():
    nodes = {"nodes": {"n0": {"resources_available": {"ncpus": 4}}}}
    assert describe_document(nodes, "d").format == "pbsnodes"
    config = {"resource": {"config": [{"hosts": "n0", "cores": "0"}]}}
    assert describe_document(config, "d").format == "Flux configuration"
    for other in ({}, [], 4, {"graph": {}}, {"queues": {}}, {"all": None}):
        assert describe_document(other, "d") is None


def test_states_of_one_file_are_added_to_the_nodes_of_another(tmp_path):
    (tmp_path / "b.toml").write_text(FLUX)
    (tmp_path / "a-status.txt").write_text(STATUS)
    (tmp_path / "notes.txt").write_text("about this machine\n")
    found = read_description(tmp_path)
    assert found.recipe.groups[0].cores == 4
    assert found.recipe.groups[0].drained == {"n3"}
    assert found.format == "Flux configuration, flux resource status"
    assert any("not recognised" in note.text for note in found.notes)


def test_queues_and_nodes_of_pbs_are_one_site(tmp_path):
    (tmp_path / "nodes").write_text(PBS + "     queue = a\n")
    (tmp_path / "queues").write_text(QMGR)
    found = read_description(tmp_path / "queues", tmp_path / "nodes")
    queue = from_document(found.config)["queues"].queues["a"]
    assert (str(queue.constraint.names[0]), queue.longest) == ("a", 3600)
    assert found.recipe.groups[0].hosts == ("n0",)


def test_a_configuration_names_files_beside_it(tmp_path):
    (tmp_path / "flux.toml").write_text('[resource]\npath = "R.json"\n')
    lite = [{"rank": "0", "children": {"core": "0-3"}}]
    document = {"version": 1, "execution": {"R_lite": lite, "nodelist": ["m"]}}
    (tmp_path / "R.json").write_text(json.dumps(document))
    assert read_description(tmp_path / "flux.toml").recipe.groups[0].hosts == ("m",)


def test_r_and_queues_of_flux_are_one_site(tmp_path):
    lite = [{"rank": "0-1", "children": {"core": "4-7", "gpu": "0"}}]
    (tmp_path / "R").write_text(
        json.dumps(
            {"version": 1, "execution": {"R_lite": lite, "nodelist": ["m[0-1]"]}, "scheduling": {"x": 1}}
        )
    )
    (tmp_path / "config.json").write_text(
        json.dumps({"queues": {"a": {"policy": {"limits": {"duration": "1h"}}}}})
    )
    found = read_description(tmp_path / "config.json", tmp_path / "R")
    (group,) = found.recipe.groups
    assert (group.hosts, str(group.core_ids), group.gpus) == (("m0", "m1"), "4-7", 1)
    assert from_document(found.config)["queues"].queues["a"].longest == 3600
    assert [note.text for note in found.notes] == ["the graph or topology of R"]


def test_topologies_of_several_nodes_are_one_machine(tmp_path):
    for name in ("x", "y"):
        inside = f'<object type="Machine"><info name="HostName" value="{name}"/>'
        (tmp_path / f"{name}.xml").write_text(HWLOC.replace('<object type="Machine">', inside))
    assert read_description(tmp_path).recipe.groups[0].hosts == ("x", "y")


def test_inputs_without_nodes_are_refused(tmp_path):
    with pytest.raises(FormatError, match="no files"):
        read_description(tmp_path)
    (tmp_path / "queues").write_text(QMGR)
    with pytest.raises(FormatError, match="no nodes are described, only queues of PBS"):
        read_description(tmp_path)
    (tmp_path / "prose").write_text("these are words\n")
    with pytest.raises(FormatError, match="the format is not recognised"):
        read_description(tmp_path / "prose")
    with pytest.raises(FormatError, match="no such file"):
        read_description(tmp_path / "nothing")


def test_thousands_of_faults_are_counted():
    text = PBS + "".join(f"n{n}\n     np = 4\n     state = s{n}\n" for n in range(1, 3000))
    notes = describe_text(text, "f").notes
    assert len(notes) == 1001
    assert notes[-1].text == "2,000 more faults and notes of this file"


def test_strict_ends_at_the_first_fault(tmp_path):
    (tmp_path / "pbs").write_text(PBS + "     stat = free\n")
    assert [note.kind for note in read_description(tmp_path).notes] == ["fault", "assumed"]
    with pytest.raises(FormatError, match="pbs:5: unknown key 'stat'; did you mean state"):
        read_description(tmp_path, strict=True)


# -- any text ----------------------------------------------------------------------------

FRAGMENTS = sorted(
    {word for text in EXAMPLES.values() for line in text.splitlines() for word in (line, *line.split())}
    | {
        "[[resource.config]]",
        "hosts = ",
        "[queues",
        "policy",
        "-1",
        "99999999999999999999",
        "\x00",
        "é",
        "{",
        "]",
    }
)
SOUP = st.lists(st.sampled_from(FRAGMENTS) | st.text(string.printable, max_size=8), max_size=25)
HANDLED = [
    recognition.FLUX_CONFIG,
    recognition.FLUX_LIST,
    recognition.FLUX_STATUS,
    recognition.PBSNODES,
    recognition.QMGR,
]


@pytest.mark.slow
@given(SOUP, st.sampled_from([" ", "\n", "\n     "]))
@settings(max_examples=300)
def test_any_text_is_read_or_refused_as_an_error_of_ours(words, between):
    text = between.join(words)
    for kind in (*HANDLED, recognition.HWLOC, recognition.PLATFORM):
        for strict in (False, True):
            try:
                found = described(kind, text, "f", strict=strict)
            except SimschedError:
                continue
            assert parse_recipe(recipe_document(found.recipe)) if found.recipe.groups else True
            if found.config:
                from_document(found.config)


@given(st.data())
@settings(max_examples=150)
def test_a_damaged_file_is_read_or_refused_as_an_error_of_ours(data):
    kind = data.draw(st.sampled_from([*HANDLED, recognition.HWLOC, recognition.PLATFORM]))
    text = EXAMPLES[kind]
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 12)))
    damaged = text[:at] + data.draw(st.text(max_size=6)) + text[end:]
    try:
        describe_text(damaged, "f")
    except SimschedError:
        pass
    except ModuleNotFoundError:  # a text that looks like one of Slurm
        pass


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["0-3", "n[0-3]"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["nodes", "Queue", "all", "R", "down", "resource", "config", "hosts", "cores", "queues", "policy",
             "limits", "duration", "sched-fluxion-qmanager", "queue-params", "execution", "version", "np"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.sampled_from(["nodes", "Queue", "all", "R", "resource", "sched-fluxion-resource"]), JSON, JSON)
@settings(max_examples=200)
def test_any_document_is_read_or_refused_as_an_error_of_ours(key, value, other):
    document = {**(other if isinstance(other, dict) else {}), key: value}
    if isinstance(document.get("nodes"), list):
        return
    try:
        found = describe_document(document, "f")
    except SimschedError:
        return
    if found is not None and found.config:
        from_document(found.config)
