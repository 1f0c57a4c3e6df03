"""Job orders: which waiting job is considered first.

`ranking` defines an order, `order` has the orders by name, and `fairshare` is the order that
remembers the past. `starving` puts jobs that have waited too long first, and `candidate_order` is the order
of backfill candidates. Imports only `job_table` of this room.
"""
