"""The queue policies, one module each, and `registry`, which finds them by name.

Begin with `fcfs`, then `easy`, then `conservative`. `selective` and `slack` are variations of `conservative`,
`slurm` is one of `replanning`, and `limited` wraps any policy. The options of a policy are
a declared table. Imports `pass_context`, `supply`, `orders` and `profiles` of this room.
"""
