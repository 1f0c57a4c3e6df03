"""Availability over time: expected ends, reservations, and the earliest start of a request.

`plan` is what policies use. A profile is one number per segment of time where counts decide
(`count_profile`), and the states of the graph where they do not (`graph_profile`).
"""
