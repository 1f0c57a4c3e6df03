"""The parts that readers of several formats share: notes, nodes as groups, and checked values of nodes.

Imports what `formats.machines` imports, and `description`.  Begin with `node_groups`.
"""
