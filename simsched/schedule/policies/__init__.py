"""The queue policies, one module each, and `registry`, which finds them by name.

Begin with `fcfs`, then `easy`, then `conservative`.
"""
