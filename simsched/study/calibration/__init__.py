"""Calibration: which rules of a run bring its waits nearest to those that a log recorded.

Begin with `calibrate`: it makes a baseline run of the log, tries each setting of each knob (`knobs`, the one
table of what is tried) and then several together, by the error of training weeks (`trials`), and measures
the result on weeks that had no part in the choice.  `calibration` is the result with its words and its
directory.  Imports `spec`, `runs` and `sizing`.
"""
