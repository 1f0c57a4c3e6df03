"""The searches behind `size` and `headroom`.

Begin with `size`: a request gives an axis (`size_axis`), an evaluator that simulates one value with every
seed (`evaluation`) and a search over values (`search`).  `answer` is the answer
with its words and its directory.  Imports `spec`, `runs` and `study.stats`.
"""
