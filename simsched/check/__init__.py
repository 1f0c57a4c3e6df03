"""Whether the files of a site agree: the machine in several forms, the queues, the storage.

`site_files` reads the files and brings each description of the machine into one form; the rules in `rules`
yield the faults.  Begin there.  Imports `formats`, `graph`, `match`, `simulation` and `site`.
"""
