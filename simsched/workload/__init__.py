"""Jobs: the values, the readers of every trace format, synthetic models, and transforms.

Everything that a reader or a model returns is a `job.Workload`. `load` finds the reader by content,
`mapping` turns flat counts into requests. Imports `formats`; nothing here depends on a cluster.
"""
