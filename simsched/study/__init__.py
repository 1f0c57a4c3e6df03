"""Many runs: sweeps over machines, loads and policies, and searches for a machine size or a load.

Begin with `sweep`, which performs a study, and `study_folder`, its directory.  `grid` and `stats` compare
runs over seeds, as text, too; `study_page` is the page.  The wings import in one direction:
`spec` describes runs, `runs` performs them, the modules here put them together, and `search` searches for
a size, a load, or the settings that come nearest to a log.  Imports `simulation`, `report` and the packages
before them.
"""
