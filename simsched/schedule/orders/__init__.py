"""Job orders: which waiting job is considered first.

`ranking` says what an order must do, `order` has the orders by name, and `fairshare` is the order that
remembers the past. Imports only `job_table` of this room.
"""
