"""Advance reservations: nodes, cores and licences that are kept for some users, accounts or queues.

`reservation_rules` are the tables of a configuration. During a run `ReservedPlaces` chooses what they get,
and `reservation_book` keeps it for their jobs.
"""
