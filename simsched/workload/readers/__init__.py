"""Readers of job logs, one module per format; `gather` has the parts that they share.

`workload.load.READERS` is the table of them.
"""
