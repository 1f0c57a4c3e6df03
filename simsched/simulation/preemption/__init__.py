"""Jobs that take the place of running ones: the rules, the fate of the victims, and checkpoints.

`preemption` finds and removes victims, `suspension` follows suspended jobs, and `job_attempts` the work that
checkpointable jobs keep.  The rules are values of the run options.  Begin with `preemption_rules`.
"""
