"""Advance reservations: nodes that are kept for some users, accounts or queues at a time.

`reservation_rules` are the tables of a configuration, `reservation_book` places them during a run.
"""
