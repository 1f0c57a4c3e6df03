"""Which modules have no doctests to collect."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
#: What is compiled, which pytest does not read as source; and what Flux alone can import.
collect_ignore = [
    *(str(types.with_suffix(".py")) for types in HERE.glob("simsched/**/*.pxd")),
    "simsched/flux/flux_pool.py",
]
