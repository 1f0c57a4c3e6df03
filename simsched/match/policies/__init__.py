"""Match policies: the order in which candidates are taken (M8).

`policy` is the table; a policy is a sort key over `candidates`. `plugins` finds the policies of other
packages. Imports `requests` and `state`.
"""
