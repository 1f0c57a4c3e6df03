"""The compiled index: a resource graph as arrays in preorder, on which matching runs.

`index` is the entrance. `preorder` numbers the vertices, `types` and `compile_types` make the arrays of
each resource type, `leaf_pools` those of the leaves, and `reach` answers which units are below a vertex.
"""
