"""The tests, laid out as the package is; `reference` holds the independent programs they compare with."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
