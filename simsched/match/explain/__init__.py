"""Why a request does not fit (M12): funnels, holders of missing units, nearest changes.

`explanation` is the entrance, `reasons` the values that users see.
"""
