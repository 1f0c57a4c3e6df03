"""Files as text and text as values: compression, encodings, strict JSON and YAML, places of faults.

`documents` is the entrance: it reads a file and returns the value with a place for each part.
`diagnostics` and `carets` show faults, `sniffing` recognises formats by content. The other packages of
`formats` import this one; it imports none of them.
"""
