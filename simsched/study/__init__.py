"""Many runs: sweeps over machines, loads and policies, and searches for a machine size or a load.

`sweep` performs a study, `study_result` reads its directory. `spec` describes runs, `runs` performs them,
`sizing` searches. Imports `simulation` and `report`.
"""
