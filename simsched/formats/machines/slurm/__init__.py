"""Slurm's files: slurm.conf and its relatives, scontrol, sinfo and sacctmgr.

The readers `slurm_conf`, `scontrol` and `sacctmgr` collect `SlurmRecords`, whose keys are those of slurm.conf
in lower case, since Slurm ignores their case.  `understanding` makes facts of the records of all files.
Imports what `formats.machines` imports.  Begin with `slurm_records`, and `understanding` after it.
"""
