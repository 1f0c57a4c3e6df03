"""Outages: targets that fail, are drained or are in maintenance, and their effect on a run."""
