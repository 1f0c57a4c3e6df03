"""Colours of all charts, distinct for colour-blind people as well.

Okabe and Ito's palette ("Color universal design", 2008) without its black and its yellow,
which are invisible on a dark or a light ground, and with a blue for both; the sequential scale is
cividis.
"""

from __future__ import annotations

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY = (
    "#1c7fc4", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8f98")  # fmt: skip

#: for categories in order; the ninth has the first colour again
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, "#7b61c4", GREY)

#: the colour of each result
RESULT = {
    "COMPLETED": BLUE,
    "TIMEOUT": ORANGE,
    "FAILED": VERMILION,
    "CANCELED": PURPLE,
    "RUNNING": SKY,
    "PENDING": GREY,
    "INFEASIBLE": "#6b6f76",
    "DROPPED": "#a9adb3",
}

#: the colour of each resource type
TYPE = {"node": SKY, "core": BLUE, "gpu": ORANGE}

#: the colour of each cause of a wait that is not a shortage, by its first word
_CAUSE = {"dependency": GREY, "begin-time": GREY, "held": GREY, "not": GREY, "queue-stopped": "#6b6f76",
          "limit": ORANGE, "placement": GREEN, "unavailable": VERMILION, "maintenance": "#a9adb3",
          "advance-reservation": "#7b61c4", "interrupted": VERMILION, "blocked": ORANGE}  # fmt: skip


def of_cause(cause: str) -> str:
    """Return the colour of a cause of waits; a shortage has that of its type."""
    if cause.startswith("short of "):
        return TYPE.get(cause.removeprefix("short of "), VERMILION)
    return _CAUSE.get(cause.partition(" ")[0], PURPLE)


def cycle(count: int) -> list[str]:
    """Return `count` colours, repeating after eight."""
    return [CYCLE[i % len(CYCLE)] for i in range(count)]
