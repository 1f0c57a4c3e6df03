"""Plug-ins: values of other packages that take the place of ours, found by name or given as objects.

`plugin_kind` is the one mechanism: a kind has an entry-point group and a protocol, and checks what it loads.
`protocol_check` compares a value with a protocol, `typed_options` reads options, and `plugin_errors` turns
what a plug-in raises into an error that names it.  Each kind is declared where its values are used.
Imports `errors` and `arguments` only.
"""
