"""One file of each format, by command line: shown, written in every form that there is, and read back.

What a form cannot hold is said on standard error, a line each; where nothing is said, a
scheduler could not tell the two apart (`cluster diff`).
"""

from __future__ import annotations

import json

import pytest

from simsched.cli import main
from tests.reference.rsets import EXAMPLE

FORMS = ("r", "r+jgf", "jgf", "treepool")

R = {
    **EXAMPLE,
    "execution": {
        **EXAMPLE["execution"],
        "nslots": 4,
        "properties": {"amd-mi50@gpu": "19-20", "batch": "19-22", "+local": "19"},
    },
}

RECIPE = {
    "groups": [
        {"name": "gpu", "count": 4, "sockets": 2, "cores": 8, "gpus": 2, "memory": "64 GiB"},
        {"name": "cpu", "count": 4, "sockets": 2, "cores": 16, "memory": "32 GiB", "properties": ["batch"]},
    ],
    "racks": 2,
    "network": {"type": "fat-tree", "nodes_per_leaf": 2},
    "power": {"budget": "20 kW", "node": "800 W"},
}

_INSIDE = ["localities within them: 8 socket", "pools that are measured, not counted: 8 memory"]
_FOUR = ["vertices above or beside the execution targets: 2 rack, 2 pdu", "the subsystems power"]
_RACKED = ["vertices above or beside the execution targets: 2 rack", "the subsystems network, power"]
#: source → form → what is not held
LOSSES = {
    "r": {"jgf": ["facts of R about the whole set: expiration, nslots, starttime"]},
    "jgf4": {"r": [*_FOUR, *_INSIDE], "treepool": [*_FOUR, "parts of a GiB, rounded down: 8 memory"]},
    "grug4": {"r": [*_FOUR, *_INSIDE], "treepool": [*_FOUR, "parts of a GiB, rounded down: 8 memory"]},
    "topo16": {
        "r": [
            "localities within them: 32 socket, 64 numa",
            "pools that are measured, not counted: 16 memory, 16 storage",
        ]
    },
    "recipe": {
        "r": [
            *_RACKED,
            "localities within them: 16 socket",
            "pools that are measured, not counted: 8 memory",
        ],
        "treepool": _RACKED,
    },
}
LOSSES["r+jgf"] = LOSSES["jgf4"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Source → file or bundled name: R, R with a graph, JGF, GRUG, TreePool, a recipe."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "r.json").write_text(json.dumps(R))
    both = folder / "both.json"
    assert main(["cluster", "convert", "jgf4", "--to", "r+jgf", "-o", str(both)]) == 0
    (folder / "recipe.json").write_text(json.dumps(RECIPE))
    made = {"r": str(folder / "r.json"), "r+jgf": str(both), "recipe": str(folder / "recipe.json")}
    return {name: name for name in LOSSES} | made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", sorted(LOSSES))
def test_each_form_of_each_source_is_written_read_and_compared(source, form, sources, tmp_path, capsys):
    given, first, second = sources[source], tmp_path / "first.json", tmp_path / "second.json"
    assert main(["cluster", "show", given]) == 0
    assert "execution targets" in capsys.readouterr().out
    assert main(["cluster", "convert", given, "--to", form, "-o", str(first)]) == 0
    said = [
        line.partition(f"not represented by {form}: ")[2] for line in capsys.readouterr().err.splitlines()
    ]
    assert sorted(said) == sorted(LOSSES[source].get(form, []))
    assert main(["cluster", "show", str(first)]) == 0
    lost = bool(LOSSES[source].get(form)) and form != "jgf"  # times and slots are no hardware
    assert main(["cluster", "diff", given, str(first)]) == (1 if lost else 0)
    assert main(["cluster", "convert", str(first), "--to", form, "-o", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()
    if not lost:
        back = tmp_path / "back.json"
        assert main(["cluster", "convert", str(first), "--to", "r+jgf", "-o", str(back)]) == 0
        assert main(["cluster", "diff", given, str(back)]) == 0


def test_the_sentence_of_a_planner_is_one_command(capsys):
    """1,000 nodes, two sockets, 64 cores, 4 GPUs, 512 GB, 16 racks."""
    words = "cluster make --nodes 1000 --sockets 2 --cores 64 --gpus 4 --racks 16 --format jgf --compact"
    assert main([*words.split(), "--memory", "512 GB"]) == 0
    document = json.loads(capsys.readouterr().out)
    kinds = [vertex["metadata"]["type"] for vertex in document["graph"]["nodes"]]
    assert {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)} == {
        "cluster": 1,
        "rack": 16,
        "node": 1000,
        "socket": 2000,
        "core": 2000,
        "gpu": 2000,
        "memory": 1000,
    }
    sizes = {v["metadata"]["size"] for v in document["graph"]["nodes"] if v["metadata"]["type"] == "core"}
    assert sizes == {32}
