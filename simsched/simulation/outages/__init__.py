"""Outages: targets that fail, are drained or are kept free for maintenance, and what a run does then."""
