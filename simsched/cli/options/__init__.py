"""Options that several verbs share, and the reading of the inputs that they name.

`workloads` serves every verb that reads jobs, `run_options` every verb that simulates or repeats a run, and
`job_objects` reads SSS Job Objects.  Imports `support`.
"""
