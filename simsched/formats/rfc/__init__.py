"""The small notations of the Flux RFCs, a module each: an immutable value and its text.

`idset` (RFC 22), `hostlist` (RFC 29), `count` (RFC 14, RFC 45), `duration` (RFC 23), `constraint` (RFC 31,
its text RFC 35), `dependency` (RFC 26), `eventlog` (RFC 18). Two notations are our own
and are here because other packages build on them: `calls` (``name(argument, …)``) and `predicates` (the
grammar of and, or, not). Imports `formats.text` only.
"""
