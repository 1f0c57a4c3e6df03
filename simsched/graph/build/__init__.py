"""From documents to a resource graph, one module per format; `cluster_files` chooses by content.

`assemble` is the only way to make a graph: it checks and freezes it. `networkx_graph` takes a graph that
the user built. Imports `graph.pool`, `graph.resource_graph` and the values of `formats.cluster`.
"""
