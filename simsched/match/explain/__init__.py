"""The reasons against a match (M12): funnels, holders of missing resources, suggestions.

Begin with `explanation`, which finds them, and `reasons`, the values that users see. `funnel` counts the
candidates that each filter leaves, `occupancy` knows the allocations, and `suggestions` tries changes.
"""
