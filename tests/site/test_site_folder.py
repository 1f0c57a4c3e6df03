"""The folder of a site: what is written can be read, and nothing of a user's is lost."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.errors import ConfigError, FormatError, RunError
from simsched.formats.cluster.recipe import Level, NodeGroup, Recipe, parse_recipe
from simsched.formats.machines.description import MachineDescription, Note
from simsched.site.import_site import site_of
from simsched.site.site_folder import load_site, save_site

QUEUES = {
    "queues": {
        "batch": {"requires": ["batch"], "policy": {"limits": {"duration": "8h"}}},
        "odd name.": {"hosts": "n1", "priority": -1, "closed": [["1h", "2h"]]},
    },
    "policy": {"jobspec": {"defaults": {"system": {"queue": "batch"}}}},
}


def description(**words):
    recipe = parse_recipe(
        {
            "name": "hill",
            "groups": [
                {
                    "name": "n",
                    "count": 3,
                    "cores": 4,
                    "memory": "8 GB",
                    "properties": ["batch"],
                    "down": "n2",
                },
                {"name": "g", "count": 1, "sockets": 2, "cores": 4, "gpus": 2},
            ],
        }
    )
    notes = (Note("assumed", "all is well", "hill.conf:3"), Note("left out", "a | b"), Note("fault", "what"))
    return MachineDescription(**{"recipe": recipe, "config": QUEUES, "notes": notes, "format": "x", **words})


@pytest.fixture
def folder(tmp_path):
    return save_site(site_of(description(), []), tmp_path / "site")


def test_a_site_that_was_written_can_be_read(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "cluster.yaml", "queues.toml", "site.json"
    ]  # fmt: skip
    site = ss.load_site(folder)
    assert site.name == "hill"
    assert site.config == QUEUES
    assert [note.kind for note in site.notes] == ["assumed", "left out", "fault"]
    assert site.notes[0].where == "hill.conf:3"
    assert len(site.cluster.index) == 4
    assert site.cluster.index.totals["gpu"] == 2


def test_memory_is_counted_in_megabytes(folder):
    pool = load_site(folder).cluster.index.pool_types["memory"]
    assert (pool.unit, pool.total) == ("MB", 16_000)  # one of the three nodes is down


def test_the_readme_has_nodes_queues_and_notes_with_their_places(folder):
    text = (folder / "README.md").read_text()
    assert "| 2 | n[0-1] | 4 cores, 8,000 MB memory | batch | up |" in text
    assert "| batch (default) | 3 | 0 | 8h | - | - | - |" in text
    assert "| odd name. | 1 | -1 | - | - | - | 1h to 2h |" in text
    assert "## Assumed\n\n- hill.conf:3: all is well\n" in text
    assert "## Not understood\n\n- what\n" in text


def test_a_machine_that_no_recipe_can_hold_is_written_as_a_graph(tmp_path):
    odd = NodeGroup(name="n", hosts=("a", "b"), locality=(Level("socket", 2),), cores=3)
    site = site_of(description(recipe=Recipe(name=None, groups=(odd,)), config={}), [])
    folder = save_site(site, tmp_path / "site")
    assert sorted(path.name for path in folder.iterdir())[:2] == ["README.md", "cluster.json"]
    again = load_site(folder)
    assert again.cluster.index.totals == site.cluster.index.totals
    assert again.cluster.index.hosts == ("a", "b")


def test_a_site_without_queues_has_an_empty_configuration(tmp_path):
    folder = save_site(site_of(description(config={}), []), tmp_path / "site")
    assert load_site(folder).config == {}
    assert "name no queues" in (folder / "queues.toml").read_text()
    assert "no queues" in (folder / "README.md").read_text()


def test_an_import_replaces_an_import_that_is_as_it_was_written(folder):
    save_site(site_of(description(config={}), []), folder)
    assert load_site(folder).config == {}


@pytest.mark.parametrize("name", ["queues.toml", "cluster.yaml", "README.md"])
def test_an_edited_file_is_never_replaced(folder, name):
    (folder / name).write_text((folder / name).read_text() + "\n# mine\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RunError, match=f"{name} was edited since the site was imported"):
        save_site(site_of(description(config={}), []), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "notes.txt").write_text("mine"), "'notes.txt' is not part of the site"),
        (lambda folder: (folder / "site.json").unlink(), "holds something that is not a site"),
        (lambda folder: (folder / "site.json").write_text("{"), "holds something that is not a site"),
    ],
)
def test_a_folder_with_files_of_a_user_is_refused(folder, spoil, message):
    spoil(folder)
    with pytest.raises(RunError, match=message):
        save_site(site_of(description(), []), folder)


def test_a_folder_that_was_written_by_hand_is_a_site(tmp_path):
    (tmp_path / "cluster.yaml").write_text("groups: [{name: n, count: 2, cores: 4}]\n")
    (tmp_path / "queues.toml").write_text("order = 'priority'\n[queues.all]\nhosts = 'all'\n")
    site = load_site(tmp_path)
    assert (site.name, site.notes, list(site.queues)) == (tmp_path.name, (), ["all"])
    assert site.cluster.index.totals["core"] == 8


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "queues.toml").unlink(), "the site has no queues.toml"),
        (lambda folder: (folder / "cluster.yaml").unlink(), "the site has no cluster file"),
        (lambda folder: (folder / "cluster.json").write_text("{}"), "both cluster.yaml and cluster.json"),
        (lambda folder: (folder / "queues.toml").write_text("[queues\n"), r"queues.toml:1: not TOML"),
        (
            lambda folder: (folder / "queues.toml").write_text(
                "[queues.a.policy.limits]\nduration = 'long'\n"
            ),
            r"queues.toml: queues.a.policy.limits.duration",
        ),
        (lambda folder: (folder / "queues.toml").write_text("order = 'best'\n"), "best"),
    ],
)
def test_a_damaged_site_is_an_error_with_its_place(folder, spoil, message):
    spoil(folder)
    with pytest.raises((ConfigError, FormatError), match=message):
        load_site(folder)


def test_a_damaged_machine_is_an_error_with_its_place(folder):
    (folder / "cluster.yaml").write_text("groups:\n- {name: n, count: 2, coers: 4}\n")
    with pytest.raises(FormatError, match=r"cluster.yaml.*coers"):
        _ = load_site(folder).cluster


def test_a_damaged_record_is_an_error_with_its_place(folder):
    record = json.loads((folder / "site.json").read_text())
    record["notes"] = [{"kind": "guess", "text": "x"}]
    (folder / "site.json").write_text(json.dumps(record))
    with pytest.raises(FormatError, match=r"site.json.*notes"):
        load_site(folder)


@pytest.mark.parametrize("path", ["", 5, "nowhere"])
def test_a_path_that_is_not_a_folder_is_refused(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        load_site(path)


def test_a_configuration_that_is_not_valid_is_refused_at_the_import():
    with pytest.raises(ConfigError, match=r"hill.*unknown key 'qeues'"):
        site_of(description(config={"qeues": {}}, format="hill"), [])
