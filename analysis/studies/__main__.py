"""``make studies``: run every study and write its page and figures."""

from __future__ import annotations

import sys
from importlib import import_module

STUDIES = (
    "queue_policies",
    "match_policies",
    "how_many_nodes",
    "estimates",
    "outages",
    "coverage",
    "forecasts",
    "four_logs",
)


def main(names: list[str]) -> None:
    """Run the studies named, or all of them."""
    for name in names or STUDIES:
        print(f"== {name}", flush=True)
        import_module(f"analysis.studies.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
