"""The order of the wings of some rooms, read from the source; type-checking imports count."""

from __future__ import annotations

import ast

import pytest

from tests import REPOSITORY
from tests.test_layers import imports_of

#: Room → its wings, folders or modules, from the first to the last; "" is the other modules of the room.
ORDER = {
    "formats": ["text", "rfc", "jobspec", "sss", "cluster", "machines", ""],
    "match": ["kernel", "requests", "state", "policies", "search", "explain", ""],
    "study": ["spec", "runs", "", "sizing", "calibration"],
    "cli": ["support", "options", ""],
}


def wing_of(room: str, rest: list[str]) -> str:
    """The wing of the module ``simsched.ROOM.REST``."""
    return rest[0] if rest and rest[0] in ORDER[room] else ""


@pytest.mark.parametrize("room", ORDER)
def test_wings_import_in_one_direction(room):
    order, found = ORDER[room], []
    for path in sorted((REPOSITORY / "simsched" / room).rglob("*.py")):
        parts = path.relative_to(REPOSITORY / "simsched" / room).parts
        here = order.index(wing_of(room, [parts[0].removesuffix(".py")]))
        for line, name in imports_of(ast.parse(path.read_text())):
            words = name.split(".")
            if words[:2] == ["simsched", room] and order.index(wing_of(room, words[2:])) > here:
                found.append(f"{'/'.join(parts)}:{line}: {name}")
    assert found == []
