"""Run directories as data frames: `tables` is the entrance.

The other modules hold what charts and queries need of them: allocations, Gantt boxes, series, SQL.
"""
