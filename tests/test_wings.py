"""The order of the wings of some rooms, read from the source; type-checking imports count."""

from __future__ import annotations

import ast

import pytest

from tests import REPOSITORY
from tests.test_layers import imports_of

#: Room → its wings from the first to the last; "" is the modules of the room itself.
ORDER = {
    "formats": ["text", "rfc", "jobspec", "sss", "cluster", "accounts", "machines", ""],
    "match": ["requests", "state", "policies", "search", "explain", ""],
    "study": ["spec", "runs", "", "sizing", "calibration"],
    "cli": ["support", "options", ""],
}


def wing_of(room: str, rest: list[str]) -> str:
    """The wing of the module ``simsched.ROOM.REST``."""
    return rest[0] if rest and (REPOSITORY / "simsched" / room / rest[0]).is_dir() else ""


@pytest.mark.parametrize("room", ORDER)
def test_wings_import_in_one_direction(room):
    order, found = ORDER[room], []
    for path in sorted((REPOSITORY / "simsched" / room).rglob("*.py")):
        parts = path.relative_to(REPOSITORY / "simsched" / room).parts
        here = order.index(parts[0] if len(parts) > 1 else "")
        for line, name in imports_of(ast.parse(path.read_text())):
            words = name.split(".")
            if words[:2] == ["simsched", room] and order.index(wing_of(room, words[2:])) > here:
                found.append(f"{'/'.join(parts)}:{line}: {name}")
    assert found == []
