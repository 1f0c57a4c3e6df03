"""Sites' own descriptions of machines and queues: slurm.conf, scontrol, Flux, PBS, hwloc, Batsim.

Each module reads one format and returns a `MachineDescription`, so everything after the reader is
the same for all of them; `merging` joins those of several files, and the wing `shared` has the parts
that readers have in common.  `graph.build` makes the resource graph from the recipe.  Begin with
`description`.  Imports `formats.rfc`, `formats.text` and `formats.cluster.recipe`.
"""
