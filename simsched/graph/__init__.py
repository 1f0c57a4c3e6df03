"""Resource graphs: vertices of RFC 4 in a networkx `MultiDiGraph`, and their compiled form.

Begin with `pool` (a vertex) and `resource_graph` (the graph), then `cluster`, the value that users hold.
`build` makes graphs, `index` compiles one to arrays for matching, `write` and `inspect` write and show
it, and `edit` derives changed clusters. Imports `formats`; networkx is imported nowhere else.
"""
