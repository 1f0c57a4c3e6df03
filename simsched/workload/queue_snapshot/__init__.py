"""The queue of a live cluster at one moment: running jobs with their allocations, and waiting jobs.

`snapshot` is the value, `load_snapshot` recognises a file, `flux_queue` and `snapshot_document` read the
two formats.
"""
