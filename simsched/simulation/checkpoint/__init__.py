"""Checkpoints: the state of a run at one instant as a file, from which it continues."""
