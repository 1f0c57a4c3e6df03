"""Availability over time: expected ends, reservations, and the earliest start of a request.

Begin with `plan`: the running jobs and their expected ends. `earliest` searches it for the start of one
request. `profile` defines how reservations are added: as numbers per segment of time where counts decide
(`free_steps`, `count_profile`, `count_reservations`), on the graph elsewhere (`graph_profile`,
`graph_reservations`; `lasting` has another form of these). Imports `match`, `job_table` and `maintenance`.
"""
