"""What a study varies: study files, axes, edits of clusters, and their expansion to tasks.

`study` has the values, `study_file` the reader.
"""
