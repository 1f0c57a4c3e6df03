"""The compiled index: a resource graph as arrays in preorder, for matching.

Begin with `index`. `preorder` numbers the vertices, `types` and `compile_types` make the arrays of
each resource type, `reach` answers which units are below a vertex, and `target_leaves` which leaf pools are
on a target.
"""
