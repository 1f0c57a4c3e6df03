"""Counting how many copies fit below each vertex, and selecting which of them are taken.

`exact` is the search for requests whose siblings compete for the same units (M10), with `ledger` as its
notebook of claims that can be undone. Begin with `counts`, then `select`, then `descend`.
"""
