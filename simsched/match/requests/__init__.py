"""Requests in the terms of one cluster: `compile` turns a jobspec into a `request.Request`.

`dialect` is the value of the matching rules that the compiler reads, `competition` decides whether
siblings need the exact search.
"""
