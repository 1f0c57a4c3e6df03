"""An independent check of a run directory, from the machine, the requests and the recorded R alone.

`auditor` is the entrance.  The package may import formats, the graph, workloads and the life cycle of jobs,
but neither the matcher nor the engine.
"""
