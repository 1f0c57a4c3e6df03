"""The figure that all drawings of this package are: a matplotlib Figure that keeps its style."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping


class ShownFigure(Figure):
    """A matplotlib Figure that a notebook shows without ``%matplotlib inline``.

    matplotlib makes ticks and their labels when it draws, by the settings of that moment, so that the style
    belongs to the figure.
    """

    def __init__(self, *args: Any, style: Mapping[str, Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self._style = dict(style)

    def draw(self, renderer: Any) -> None:
        """Draw the figure in its style."""
        with rc_context(cast("Any", self._style)):
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save the figure in its style; arguments as those of matplotlib."""
        with rc_context(cast("Any", self._style)):
            super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        """Return the picture, for a notebook."""
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
