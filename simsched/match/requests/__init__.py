"""Requests in the terms of one cluster: `compile` turns a jobspec into a `request.Request`.

`dialect` has the choices that RFC 14 leaves open. Imports `graph.index` and `formats`.
"""
