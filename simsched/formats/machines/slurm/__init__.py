"""The parts of the readers of Slurm's files: notations, lines, nodes, partitions, settings, switches.

The readers are `formats.machines.slurm_conf`, `scontrol` and `slurm_documents`; all of them collect
`SlurmRecords`.  Keys are in lower case everywhere, since Slurm ignores their case, and have the names of
slurm.conf.  Begin with `notation`.
"""
