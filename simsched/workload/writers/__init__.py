"""Writers of workloads: `save` is the entrance and has the table of formats."""
