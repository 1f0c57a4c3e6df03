"""Metrics: pure functions on the frames of a run.

`metrics` has the figures of jobs and of the whole run, `summary` names those of a report, and `intervals`
distinguishes differences from chance.
"""
