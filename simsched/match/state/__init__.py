"""The live state of a cluster: `availability` has the free units, `selection` is one claim as arrays.

`masks` and `draws` are the parts of it by type, `saved` is the state as JSON data. Nothing else in the
matcher changes.
"""
