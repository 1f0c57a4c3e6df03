"""A site: its machine, its queues, and what its own files left open, kept in one folder.

`site` is the value, and `site_folder` reads and writes its folder.  Begin with `site`.  Imports `formats`,
`graph` and `simulation`.
"""
