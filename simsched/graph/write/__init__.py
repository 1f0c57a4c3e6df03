"""From a resource graph to documents: R, JGF, TreePool; `losses` lists the facts that a format cannot hold.

Begin with `documents_of`. Imports `graph.holdings` and the formats.
"""
