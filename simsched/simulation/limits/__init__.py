"""Limits on the use of a cluster by user, account, queue, QoS and in all.

`limit_rules` reads the tables ``[[limits]]`` of a configuration. `limit_counters` finds the limits that count
for each job of a workload, and `limit_keeper` follows their use during a run and keeps jobs that are over a
limit out of the view of the queue policies. Begin with `limit_rules`. Imports `formats`, `schedule` and
`simulation.jobs`.
"""
