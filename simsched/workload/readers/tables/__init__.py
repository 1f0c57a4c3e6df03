"""Tables of jobs: CSV, Parquet, JSON and data frames, read by a column map over DuckDB.

`column_map` is the map, its document, and the maps of public data sets; `relation` a file or frame as a
DuckDB view, `table_reader` the SQL of each column and the way from rows to jobs, `proposal` a map
that is guessed from names and types.  Begin with `table_reader`.
"""
