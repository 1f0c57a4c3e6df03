"""Transforms: workload in, workload out. `transforms` has the functions, `steps` their form as text.

`query` selects jobs, `rescale` and `resample` change the load.
"""
