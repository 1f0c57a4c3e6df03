"""Views of a cluster for people: `view` (summaries, trees), `diff`, and `dot` (Graphviz and SVG); `fold`."""
