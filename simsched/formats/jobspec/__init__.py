"""Requests: jobspecs (RFC 14, RFC 25) and shapes (RFC 46) as one frozen value.

Begin with `jobspec` (the value) and `reader` (from files and text). `shape` parses RFC 46, `fast` is the
quick reader of plain jobspecs in JSON, `validation_rules` finds every fault of a document, `validate`
every fault of a file of any kind. Imports `formats.rfc` and `formats.text`; `validate` also the other
formats.
"""
