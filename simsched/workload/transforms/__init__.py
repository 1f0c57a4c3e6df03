"""Transforms: workload in, workload out. `transforms` has the functions, `steps` their form as text.

`query` selects jobs, `resample` draws other workloads and changes the load.
"""
