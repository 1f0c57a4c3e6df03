"""The state of a cluster: `availability` has the free units, `selection` is one claim as arrays.

`masks` and `draws` are their parts by type, and `selection_codec` writes them as JSON data. An
`Availability` is all that changes in matching. Imports `requests`.
"""
