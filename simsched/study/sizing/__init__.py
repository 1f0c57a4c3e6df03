"""The searches behind `size` and `headroom`.

Begin with `size`: a request (`sizing_request`) gives an axis, an evaluator that simulates one value with
every seed (`evaluation`) and a search over values (`search`).  `search_result` is the result as data,
`answer` and `answer_text` present it.  Imports `spec`, `runs` and `study.stats`.
"""
