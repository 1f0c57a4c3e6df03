"""Performing tasks: in this process, in local processes, on Dask, or within Flux and Slurm.

`execute` is the loop; `executors` chooses the workers; `work` runs in a worker.
"""
