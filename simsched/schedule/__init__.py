"""Scheduling: which waiting jobs start in a pass, and which of them may pass others.

Begin with `policies/fcfs` and `policies/easy`: a queue policy is a page of its own. It sees one scheduling
pass through a `pass_context`: the waiting jobs in order (`queue`, `orders`), their requests and limits
(`job_table`), and the free resources, now and later (`supply`). A supply uses numbers of units where they
decide (`count_supply`), and the kernel and the matcher elsewhere (`graph_supply`). The first job's shadow
time is that of the kernel (`kernel_shadow`), or of a search on states (`graph_shadow`). Availability over
time is in `profiles`. Predictions of run times, by which plans may go instead of limits, are in
`predictors`.

Imports `match` and the rooms before it. Nothing here advances a clock: an engine calls the policies.
"""
