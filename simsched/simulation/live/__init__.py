"""Simulations to which jobs are submitted, and in which nodes and jobs change, while the clock runs.

`open_simulation` is the interface; begin there.  `growth` lets jobs arrive at their submit times and
adds them to all columns of a run, and `watch` tells the program of the events of the engine.
May import all of `simulation`; nothing else in the room imports this package.
"""
