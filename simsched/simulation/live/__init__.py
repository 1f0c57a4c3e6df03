"""Simulations to which jobs are submitted, and in which nodes and jobs change, while the clock runs.

`open_simulation` is the interface; begin there.  `open_engine` is the engine that reports what it
does, `growth` adds jobs to all columns of a run, and `arrivals` holds the jobs whose time is still to come.
May import all of `simulation`; nothing else in the room imports this package.
"""
