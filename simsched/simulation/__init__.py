"""The simulation of a workload on a cluster: time, the life of each job, and the record of a run.

Begin with `simulate`, which takes a cluster and a workload and returns a `RunResult`. `engine` handles the
events of a run, which `environment` schedules in simpy. `EngineState` is everything that changes during a
run; the engine, `queue_groups`, `jobs`, `outages` and `preemption` each own a part of it, and `checkpoint`
writes it. `audit` checks the files of a run without any of these. The package imports `schedule` and
`workload`; simpy is imported nowhere else.
"""
