"""Searches: `size`, `headroom` and `calibrate` are three strategies over trials of changed runs.

A search goes in four steps:

1. A `SearchRequest` (`search_request`) has the inputs and options; its `base` is the task of today's machine,
   load and rules, and `opened` opens the workers.
2. A candidate is a number of an axis (`size_axis`), or settings of knobs (`knobs`).  Its trial is the base
   with that change.  Of `size` and `headroom` it runs once per seed (`seeds`), and its figures are compared
   with targets; of `calibrate` its waits are compared with those of a log.  Each candidate is tried once.
3. A strategy chooses the next candidate.  `threshold` looks for the smallest number that meets a condition: a
   size that meets the targets, or a load that misses one.  `calibrate` keeps the setting that helps most, and
   goes on beside it.
4. A `SearchAnswer` (`search_answer`) is the result, with all trials and the chosen one, as text, JSON, CSV
   and a directory.  `answer` is that of `size` and `headroom`, `calibration` that of `calibrate`.

`seeds` compares given runs over seeds, too.
"""
