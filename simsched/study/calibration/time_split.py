"""The weeks or days of a log: warm-up, those that choose settings, and those that test them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from simsched import human
from simsched.errors import ConfigError
from simsched.report.metrics.intervals import DAY

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

WEEK = 7 * DAY
#: least number of training and of held-out blocks
LEAST_TRAINING, LEAST_HELD_OUT = 4, 2
#: a log of fewer weeks is divided into days
FEWEST_WEEKS = 10


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Blocks of time from the first submission on.

    Attributes
    ----------
    begin : the first submission (s), and `length` of a block (s): a week or a day.
    warm_up, training, held_out : numbers of blocks, which follow each other in this order.  The machine of
        a simulation is empty at first and that of the log was not, so the first block is left out.
    """

    begin: float
    length: float
    warm_up: int
    training: int
    held_out: int

    @classmethod
    def of(cls, submits: Floats, held_out: float) -> TimeSplit:
        """Divide the time of submissions; `held_out` is the share of the blocks that test.

        Raises
        ------
        ConfigError
            If the log is too short to learn from, or the share leaves too few blocks.
        """
        begin, end = float(submits.min()), float(submits.max())
        length = WEEK if end - begin >= FEWEST_WEEKS * WEEK else DAY
        # A last block that is not whole would weigh like a whole one in the bootstrap.
        count = max(1, int((end - begin) // length)) - 1
        test = ceil(count * held_out)
        if test < LEAST_HELD_OUT or count - test < LEAST_TRAINING:
            need = LEAST_TRAINING + LEAST_HELD_OUT + 1
            raise ConfigError(
                f"{human.seconds(end - begin)} of submissions, with {human.share(held_out)} of them held "
                "out, are too short to learn from",
                where="calibrate",
                expected=f"at least {need} days, of which {LEAST_TRAINING} are for training and "
                f"{LEAST_HELD_OUT} are held out",
            )
        return cls(begin, length, 1, count - test, test)

    @property
    def unit(self) -> str:
        """The name of a block: ``week`` or ``day``."""
        return "week" if self.length == WEEK else "day"

    def block_of(self, submits: Floats) -> Integers:
        """Return the block of each submission, counted from the first training block; less is warm-up."""
        blocks: Integers = ((submits - self.begin) // self.length).astype(np.int64) - self.warm_up
        return blocks

    def training_end(self) -> float:
        """Return the time (s) at which the held-out blocks begin."""
        return self.begin + (self.warm_up + self.training) * self.length
