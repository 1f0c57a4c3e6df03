"""The description of runs: study files, axes, edits of clusters, and their expansion to tasks.

Begin with `run_task`, one run as data, and `study`, which expands axes to tasks; `study_file` reads a study
from a file, whose tables are those of `study_tables`.  Imports no other wing of `study`.
"""
