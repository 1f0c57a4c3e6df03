"""Rules of the audit that follow jobs over several allocations.  Begin with `interrupted_work`."""
