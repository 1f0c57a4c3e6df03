"""The small notations of the Flux RFCs, one module each: a frozen value, its text form, and back.

`idset` (RFC 22), `hostlist` (RFC 29), `count` (RFC 14, RFC 45), `duration` (RFC 23), `constraint` (RFC 31)
and its text `constraint_text` (RFC 35), `dependency` (RFC 26), `eventlog` (RFC 18). Imports `formats.text`
only.
"""
