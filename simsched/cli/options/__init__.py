"""Options that several verbs share: requests, workloads, and the options of a run."""
