"""Figures in shades of grey, for papers that are printed so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch

from simsched.report import palette

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

DASHES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)))
"""Lines that greys do not tell apart differ by these."""
OF_AREAS, OF_CURVES = (0.45, 0.84), (0.0, 0.6)
"""The darkest and the lightest grey of areas, which bear black letters, and of curves."""
LIGHTEST, DARKEST = 0.92, 0.06
"""The ends of the scale of an image: no value has the colour of the paper."""


def in_grey(figure: Any) -> None:
    """Replace every colour by a shade of grey, and let the lines of each chart differ by dashes.

    The colours of the palette have nearly the same luminance, so those that a figure uses are spread
    over the greys in their order.
    """
    legends = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
    keys = [key for legend in legends for key in legend.legend_handles]
    for key, text in zip(keys, (text for legend in legends for text in legend.get_texts()), strict=True):
        key.set_label(text.get_text())
    curves, areas = [], []
    dashes: dict[str, Any] = {}
    for axes in figure.axes:
        drawn = [*axes.lines, *axes.patches, *axes.collections]
        own = [artist for artist in drawn if _is_curve(artist)]
        dashes |= {str(curve.get_label()): DASHES[number % len(DASHES)] for number, curve in enumerate(own)}
        curves += own
        areas += [artist for artist in drawn if not _is_curve(artist)]
        for image in axes.images:
            # as cividis, the scale ascends in luminance; a scale from the colour of the paper descends
            ends = (DARKEST, LIGHTEST) if image.get_cmap().name == "cividis" else (1.0, DARKEST)
            image.set_cmap(LinearSegmentedColormap.from_list("grey", [str(end) for end in ends]))
    _recolour_curves([*curves, *filter(_is_curve, keys)], dashes)
    _recolour_areas([*areas, *(key for key in keys if not _is_curve(key))])


def _is_curve(artist: Any) -> bool:
    """Return whether an artist is a line; filled steps are an area."""
    return isinstance(artist, Line2D) or (isinstance(artist, StepPatch) and not artist.get_fill())


def _recolour_curves(curves: Sequence[Any], dashes: Mapping[str, Any]) -> None:
    """Recolour curves; the key of a curve has its label and so its dashes."""
    colours = [one.get_color() if isinstance(one, Line2D) else one.get_edgecolor() for one in curves]
    grey = _Greys(colours, OF_CURVES)
    for curve, colour in zip(curves, colours, strict=True):
        curve.set(color=grey(colour)[0], linestyle=dashes[curve.get_label()])


def _recolour_areas(areas: Sequence[Any]) -> None:
    plain = [area for area in areas if isinstance(area, Patch) or area.get_array() is None]
    grey = _Greys((part for area in plain for part in (area.get_facecolor(), area.get_edgecolor())), OF_AREAS)
    for area in plain:
        for kind in ("facecolor", "edgecolor"):
            found = grey(area.properties()[kind])
            area.set(**{kind: found[0] if isinstance(area, Patch) else found})


class _Greys:
    """The greys of the colours of areas or of curves."""

    def __init__(self, colours: Iterable[Any], shades: tuple[float, float]) -> None:
        known = {to_rgb(colour) for colour in (*palette.CYCLE, *palette.RESULT.values())}
        used = {tuple(row) for part in colours for row in to_rgba_array(part)[:, :3].tolist()}
        found = np.array(sorted(used & known)).reshape(-1, 3)
        order = found[np.argsort(luminance(found), kind="stable")]
        steps = np.linspace(*shades, max(len(order), 2)).tolist()
        self._shade = dict(zip(map(tuple, order.tolist()), steps, strict=False))

    def __call__(self, colours: Any) -> npt.NDArray[np.float64]:
        """Return colours as greys of the same opacity."""
        rows = to_rgba_array(colours)
        pairs = zip(map(tuple, rows[:, :3].tolist()), luminance(rows).tolist(), strict=True)
        shades = [self._shade.get(colour, plain) for colour, plain in pairs]
        return np.column_stack([shades, shades, shades, rows[:, 3]])


def luminance(colours: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the luminance (0 to 1) of rows of red, green and blue (ITU-R BT.709)."""
    shades: npt.NDArray[np.float64] = colours[:, :3] @ np.array([0.2126, 0.7152, 0.0722])
    return shades
