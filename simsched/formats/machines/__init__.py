"""Sites' own descriptions of machines and queues: slurm.conf, scontrol, Flux, PBS, hwloc, Batsim.

Each module reads the files of one tool and returns a `MachineDescription`, so everything after the reader is
the same for all of them; `recognition` says what a file is, and `read` joins the descriptions of several.
`graph.build` makes the resource graph from the recipe.  Begin with `description`.  Imports `formats.rfc`,
`formats.text`, `formats.accounts` and `formats.cluster.recipe`.
"""
