"""Environments of Gymnasium in which an agent schedules: ``gymnasium.make("simsched/Backfill-v0", …)``.

Importing this package registers them; an installed simsched is also found by Gymnasium itself.  Begin with
`backfill_env`.  May import all rooms below the command line, and `live`.  Gymnasium is imported here alone.
"""

from __future__ import annotations

from simsched.extras import needs

try:
    from gymnasium.envs.registration import register, registry
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "gymnasium":
        raise
    raise needs("reinforcement learning", error, extra="rl") from None

from simsched.rl.baselines import baseline_table, play, rule
from simsched.rl.chosen_jobs import KINDS
from simsched.rl.rewards import REWARDS

__all__ = ["KINDS", "REWARDS", "baseline_table", "play", "rule"]

BACKFILL = "simsched/Backfill-v0"
"""The name under which Gymnasium finds the environment."""

if BACKFILL not in registry:
    register(id=BACKFILL, entry_point="simsched.rl.backfill_env:BackfillEnv")
