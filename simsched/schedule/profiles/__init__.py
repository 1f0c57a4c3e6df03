"""Availability over time: expected ends, reservations, and the earliest start of a request.

Begin with `plan`: the running jobs and their expected ends. `earliest` searches it for the start of one
request. Reservations are on the `Profile` of the room above where counts decide, and on the graph elsewhere
(`general_reservations`). Imports `match`, `job_table` and `maintenance`.
"""
