"""Metrics: pure functions on the frames of a run; `metrics` has them by job, `summary` by name.

`compare` and `intervals` say whether a difference is more than chance.
"""
