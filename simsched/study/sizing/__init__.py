"""The searches behind `size` and `headroom`: targets, evaluation with seeds, bracketing, the answer."""
