"""The page of one paper: question, setting, result, differences and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.pages import ResultPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from analysis.gallery.logs import Setting


class GalleryPage(ResultPage):
    """A page of the gallery."""

    def __init__(self, setting: Setting, name: str, title: str) -> None:
        super().__init__(name, title, setting.output, f"python -m analysis.gallery {name}")
        self._timed = not setting.quick
        if setting.quick:
            self.text("**A quick run** on a few jobs of a bundled workload: its numbers say nothing.")

    def conclude(
        self, verdict: Iterable[str], differences: Iterable[str], sources: Callable[[GalleryPage], None]
    ) -> None:
        """Add what was found, why numbers differ, and the sources; write the page."""
        self.section("What the paper says, and what is found here", *verdict)
        self.section("Why the numbers differ", *differences)
        sources(self)
        self.write(timed=self._timed)

    def sources(self, *entries: str) -> None:
        """Add the section of sources, each an item of a list."""
        self.parts.append("## Sources")
        self.parts.append("\n".join(f"- {' '.join(entry.split())}" for entry in entries))


def hours(seconds: float) -> str:
    """Return a time in hours with two decimals."""
    return f"{seconds / 3600:.2f}"


def short(number: float) -> str:
    """Return a slowdown: one decimal, none from 1,000 on."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.1f}"


def change(value: float, base: float) -> str:
    """Return the change from a base, in percent."""
    return f"{100 * (value / base - 1):+.0f} %"
