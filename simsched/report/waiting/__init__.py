"""Why jobs waited: the time of one job by cause (`job_wait`), and of all jobs of a run (`wait_totals`).

Both ask `wait_causes`, which reads the run by `run_facts`.  `machine_replay` rebuilds the state of the
machine at any time from the allocations of the run, and `job_answer` is the answer about a job.
Imports `match` and `simulation`, besides the rooms of `report`.
"""
