"""What a run writes: columns, allocations and events while it goes on, and the run directory at its end."""
