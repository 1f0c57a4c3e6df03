# `limit_keeper.py` is compiled without further types: it is called at each start and end of a job.
