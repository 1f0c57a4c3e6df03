"""Performing tasks: in this process, in local processes, on Dask, or within Flux and Slurm.

Begin with `dispatch`, the loop that hands tasks to workers.  `worker_pools` opens the workers,
`worker_entry` is the function that a worker runs, `single_run` performs one task with inputs of
`input_cache`, and `study_folder` keeps the results.  Imports `spec`.
"""
