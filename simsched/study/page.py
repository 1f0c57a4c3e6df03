"""The report of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.study.result import StudyResult


def write_page(result: StudyResult) -> None:
    """Write ``report.html``."""
