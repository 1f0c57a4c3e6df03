"""Requests: jobspecs (RFC 14, RFC 25) and shapes (RFC 46) as one immutable value.

Begin with `jobspec`, the value, also from a document. `shape` builds it from RFC 46, and `fast` from plain
JSON at high speed; `validation_rules` finds every fault of a document. Imports `formats.rfc` and
`formats.text`. Files of requests are read by `formats.request_files` and judged by `formats.validate`.
"""
