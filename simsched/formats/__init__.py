"""The standards that simsched reads and writes: one module per format, text in, frozen values out, and back.

`rfc` has the small notations (idsets, hostlists, counts, constraints …), `jobspec` requests, `cluster`
descriptions of machines, `sss` the SSS Job Object, and `text` the readers of JSON, YAML, XML and
compressed files below them all. Nothing here knows a graph or a clock; the package imports only the
modules beside the packages (`errors`, `files` …). Begin with `rfc.idset` for the style of a format and
`jobspec.jobspec` for a request.
"""
