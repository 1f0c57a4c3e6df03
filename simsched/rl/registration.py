"""The names under which Gymnasium finds the environments."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

BACKFILL = "simsched/Backfill-v0"


def register_environments() -> None:
    """Register each environment, once."""
    if BACKFILL not in registry:
        register(id=BACKFILL, entry_point="simsched.rl.backfill_env:BackfillEnv")
