"""Queue policies: who starts, in which order, and who may pass whom."""
