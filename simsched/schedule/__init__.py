"""Queue policies: which waiting jobs start in a pass, and which may pass others.

`pass_context` is what a policy sees in one scheduling pass; `queue` and `job_table` are what it is made
of. The policies are in `policies`, the orders of the queue in `orders`, availability over time in
`profiles`. Imports `match`; nothing here advances a clock.
"""
