"""The queue of a live cluster at one moment: running jobs with their allocations, and waiting jobs.

`snapshot` is the value.  `load_snapshot` recognises a file and reads the layout of simsched; `flux_queue` and
`slurm_queue` read the output of Flux and Slurm.
"""
