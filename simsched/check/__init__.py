"""Whether the files of a site agree: the machine in several forms, the queues, the storage.

`site_files` reads the files and brings each description of the machine into one form, and the rules in
`node_rules`, `queue_rules` and `storage_rules` yield the faults.  `rules` is the table of all rules with
their codes; begin there.  Imports `formats`, `graph`, `match`, `simulation` and `site`.
"""
