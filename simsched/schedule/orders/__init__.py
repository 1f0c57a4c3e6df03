"""Job orders: which waiting job is considered first.

`ranking` defines an order, `order` has the orders by name, and `fairshare` is the order that
remembers the past. Imports only `job_table` of this room.
"""
