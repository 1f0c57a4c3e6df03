"""Files as text and text as values: compression, encodings, strict JSON and YAML, faults with their places.

Begin with `documents`, which reads a file into values.  `diagnostics` shows faults and finds the line and
column of each part, `sniffing` recognises formats by content.  The other packages of `formats` import this
one; it imports none of them.
"""
