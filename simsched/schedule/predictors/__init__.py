"""Predictions of run times, apart from the limits that end jobs: `predictor` has the predictors by name.

Begin with `predictor`. `predictions` is a run's view of its jobs: the table of jobs with predictions in
the place of requested durations, and the correction of predictions that were too short. Imports `job_table`.
"""
