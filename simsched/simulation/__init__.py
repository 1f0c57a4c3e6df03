"""The simulation: the clock, the life of each job, and the record of a run.

`simulate` is the entrance: cluster and workload in, `record.run_directory.RunResult` out. `engine` is the
event loop. What changes during a run belongs to it and to the parts it owns: `queues`, `preemption`, `jobs`,
`outages`. `audit` checks what was written without using any of that. Imports `schedule` and `workload`;
simpy is imported nowhere else.
"""
