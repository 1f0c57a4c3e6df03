"""Job arrays: the notation of tasks, and arrays of jobs.

Begin with `array_tasks`, which imports nothing of the workload; `job_arrays` imports `job`.
"""
