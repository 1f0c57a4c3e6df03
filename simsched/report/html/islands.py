"""The packed columns of a page: each once, however many charts of however many runs share them.

Runs of one workload have the same jobs; what was submitted when, by whom and how large is then
one element of the page.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from simsched.report.html import markup
from simsched.report.html.packed import Packed, pack


class Islands:
    """Elements of packed columns in the making.

    >>> from simsched.report.html.packed import pack
    >>> islands = Islands()
    >>> [islands.add(pack({"a": np.arange(n)})) for n in (3, 4, 3)]
    ['island-0', 'island-1', 'island-0']
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def add(self, packed: Packed) -> str:
        """Return the id of the element that holds these columns, made now unless there is one already."""
        content = (json.dumps(packed.fields), packed.text)
        return self._names.setdefault(content, f"island-{len(self._names)}")

    def add_json(self, value: Any) -> str:
        """Return the id of the element that holds this value as JSON, in a column called ``text``."""
        return self.add(pack({"text": np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)}))

    def html(self) -> str:
        """Return all elements."""
        return "".join(markup.island(name, *content) for content, name in self._names.items())
