"""Bundled inputs are found by name, in a checkout and in a wheel."""

import pytest

from simsched import bundled
from simsched.errors import ConfigError


def test_a_wheel_has_its_own_folder(tmp_path, monkeypatch):
    home = tmp_path / "data" / "clusters"
    home.mkdir(parents=True)
    (home / "mine.json.gz").write_text("")
    (home / "README.md").write_text("")
    monkeypatch.setattr(bundled, "_PACKAGE", tmp_path)
    assert bundled.bundled("clusters") == {"mine": home / "mine.json.gz"}
    assert bundled.resolve("clusters", "mine") == home / "mine.json.gz"
    assert bundled.bundled("workloads") == {}


def test_a_file_goes_before_a_name_and_a_dash_is_standard_input(tmp_path, monkeypatch):
    (tmp_path / "tiny").write_text("")
    monkeypatch.chdir(tmp_path)
    assert str(bundled.resolve("clusters", "tiny")) == "tiny"
    assert str(bundled.resolve("clusters", "-")) == "-"


def test_the_error_names_those_that_exist():
    with pytest.raises(ConfigError, match=r"no-such: no such file .expected a file, or .*: .*tiny"):
        bundled.resolve("clusters", "no-such")


def test_an_empty_name_is_said_to_be_empty():
    with pytest.raises(ConfigError, match="empty"):
        bundled.resolve("clusters", "")


@pytest.mark.parametrize("kind", ["clusters", "workloads"])
def test_each_bundled_input_has_a_line(kind):
    found = bundled.summaries(kind)
    assert list(found) == list(bundled.bundled(kind))
    assert all(10 < len(text) < 160 and "|" not in text for text in found.values())
