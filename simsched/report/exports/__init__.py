"""A run in the formats of other programs, one module per format; `run_formats` is the table of them."""
