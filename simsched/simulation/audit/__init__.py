"""An independent check of a run directory, from the machine, the requests and the emitted R alone.

`auditor` is the entrance. It may import formats, the graph and workloads, and nothing of the matcher or
the engine.
"""
