"""The searches behind `size` and `headroom`.

Begin with `size`: a request (`sizing_request`) gives an axis, an evaluator that simulates one value with
every seed (`evaluation`) and a search over values (`search`).  `answer` is the answer
with its words and its directory.  Imports `spec`, `runs` and `study.stats`.
"""
