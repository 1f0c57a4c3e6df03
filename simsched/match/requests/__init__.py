"""Requests in the terms of one cluster: `compile` turns a jobspec into a `request.Request`.

`dialect` has the choices that RFC 14 leaves open, and `competition` decides whether siblings need the
exact search. Imports `graph.index` and `formats`.
"""
