"""The simulation: the clock, the life of a job, and the record of a run."""
