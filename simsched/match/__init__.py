"""The matcher: a jobspec compiled against an index, counted bottom-up, selected top-down, emitted as R.

`matcher` is the entrance: one cluster in one state. A request goes through `requests` (compiled), `search`
(counted and selected in the order of a policy of `policies`), `state` (claimed), and `emit` (R). `explain`
says why a request does not fit. Imports `graph` and `formats`; nothing here knows of time beyond the end
of a claim.
"""
