"""The parts of the readers of Slurm's files: notations, lines, nodes, partitions, settings, switches.

The readers are `formats.machines.slurm_conf`, `scontrol` and `slurm_documents`.  All of them collect
`SlurmRecords`, whose keys are those of slurm.conf in lower case, since Slurm ignores their case.  Imports
what `formats.machines` imports.  Begin with `slurm_records`, and `understanding` after it.
"""
