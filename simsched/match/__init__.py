"""The matcher: a jobspec is compiled against an index, counted bottom-up, selected top-down, emitted as R.

Begin with `matcher`: one cluster in one state. A request goes through `requests` (compiled), `search`
(counted and selected in the order of a policy of `policies`), `state` (claimed), and `emit` (R). `explain`
finds the reasons if it does not fit, and `claims_from_r` reads R back. Imports `graph` and `formats`. The
only times here are the expected ends of allocations.
"""
