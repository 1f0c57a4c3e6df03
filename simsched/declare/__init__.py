"""Tables of documents and options of runs, each declared once as a typed struct.

`table` has the base class of the structs, their reader and writer, their JSON Schema and the texts of their
fields. `kinds` are the values that fields accept, and `flags` makes options of the command line. Begin with
`table`.
"""
