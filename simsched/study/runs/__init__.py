"""Performing tasks: in this process, in local processes, on Dask, or within Flux and Slurm.

Begin with `dispatch`, the loop that hands tasks to workers.  `worker_pools` opens the workers, `single_run`
has the function that a worker runs, which performs one task with inputs of `input_cache`, and
`study_folder` keeps the results.  Imports `spec`.
"""
