"""The tutorials print what they show."""

from __future__ import annotations

import pytest
from pages import REPOSITORY, Player, blocks

TUTORIALS = sorted((REPOSITORY / "docs").glob("tutorial-*.md"))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    player = Player(page.name, tmp_path, capsys)
    for block in blocks(page):
        player.play(block)
