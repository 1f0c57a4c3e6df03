"""The Python interface to open simulations, over `simulation.live` and the tables of `report`.

May import all rooms below the command line; the facade names `Simulation`.  A package of its own because it
needs simpy at once, which reading a run does not.
"""
