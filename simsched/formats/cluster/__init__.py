"""Descriptions of machines: R (RFC 20), JGF, TreePool (RFC 49), GRUG and recipes.

Each module has the immutable value of one format and its reader. `graph.build` turns these values into a
resource graph, and `graph.write` turns a graph into them. Imports `formats.rfc` and `formats.text`.
"""
