"""When each waiting job would start: `start_times` in a run, `live_cluster` for a live queue."""
