"""Reservations on the graph that are kept from pass to pass, where equal states get equal answers.

Begin with `lasting_reservations`, which a policy sees. `room` is the free resources over time as one matrix,
`footprint` the columns that a claim changes, `room_change` what claims change in the room for requests, and
`gauges` the necessary conditions that are counted for many times at once. `tried_windows` remembers why a
reservation could not start earlier, `owned_times` at which times steps begin, `window_minima` has the
arithmetic of windows, and `pass_room` is the profile of one pass beside such a matrix.
Imports `match` and `profiles`.
"""
