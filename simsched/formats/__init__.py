"""The standards that simsched reads and writes: a module per format, with an immutable value and its text.

The packages import each other in one direction: `text` (JSON, YAML, encodings, compression, faults),
`rfc` (idsets, hostlists, counts, constraints …), then `cluster` (descriptions of machines) and `jobspec`
(requests), then `sss` (the SSS Job Object). The modules beside them read whole files: `request_files`
and `validate`. Nothing here knows a graph or a clock; the package imports only the modules
beside the packages of simsched (`errors`, `files` …). Begin with `rfc.idset` for the style of a format and
with `jobspec.jobspec` for a request.
"""
