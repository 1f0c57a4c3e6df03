"""Sites' own descriptions of machines and queues: slurm.conf, scontrol, Flux, PBS, hwloc, Batsim.

Each module reads one format and returns a `MachineDescription`, so everything after the reader is
the same for all of them.  `graph.build` makes the resource graph from its recipe.  Begin with
`description`.  Imports `formats.rfc`, `formats.text` and `formats.cluster.recipe`.
"""
