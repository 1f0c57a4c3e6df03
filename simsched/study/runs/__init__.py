"""Performing tasks: in this process, in local processes, on Dask, or within Flux and Slurm.

Begin with `dispatch`, the loop that hands tasks to workers.  `workers` are executors of `concurrent.futures`.
`single_run` has the function that a worker runs, which performs one task with inputs of `input_cache`.
Imports `spec`.
"""
