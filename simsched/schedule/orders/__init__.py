"""Job orders: which waiting job is considered first.

`ranking` defines an order, and `order` has the orders by name. `multifactor` is the order of priorities,
which `priority_rules` reads, and `fair_share` knows who used how much. Imports only `job_table` of this room.
"""
