"""Sites' own descriptions of machines and queues: slurm.conf, scontrol, Flux, PBS, hwloc, Batsim.

`recognition` says what a file is.  Each module parses the files of one tool into `SiteFacts` (those of Slurm
into records, which become facts together), so that everything behind the parsers is the same for all tools:
`read` joins the facts of all files, names the properties of queues, and returns a `MachineDescription`, whose
recipe `graph.build` makes into the resource graph.  Begin with `site_facts`.  Imports `formats.rfc`,
`formats.text`, `formats.machines.accounts` and `formats.cluster.recipe`.
"""
