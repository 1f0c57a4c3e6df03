"""From a resource graph to documents: R, JGF, TreePool; `losses` names what a format cannot hold.

`documents_of` is the entrance. Imports `graph.holdings` and the formats.
"""
