"""The record of a run: columns, allocations and events during the run, and the run directory at its end.

`recorder` collects, `allocation_log` and `event_log` write lines, `run_directory` writes the result.
"""
