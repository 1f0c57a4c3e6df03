"""Counts of the copies that fit below each vertex, and the selection of those that are taken.

Begin with `counts`, then `select`, then `descend` (with `portions`). `on_targets` selects most requests of
real sites without the descent. `target_classes` counts equal nodes once. `exact` is the search for requests
whose siblings compete for the same units (M10); `ledger` has its claims, which can be undone.
Imports `requests`, `policies` and `state`.
"""
