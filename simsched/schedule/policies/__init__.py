"""The queue policies, one module each, and `registry`, which finds them by name.

Begin with `fcfs`, then `easy`, then `conservative`. `replanning` and `limited` are variations, and `options`
reads the options of a policy from text. Imports `pass_context`, `supply` and `profiles` of this room.
"""
