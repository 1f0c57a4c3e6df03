"""Small machines and workloads as one-liners, for the stories of this folder."""

from __future__ import annotations

import pytest

from tests.simulation import simworld


@pytest.fixture
def world():
    """The helpers: `machine`, `jobs`, `story`."""
    return simworld
