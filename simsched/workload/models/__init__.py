"""Synthetic workloads: the Lublin-Feitelson model, Tsafrir's estimates, models of logs, and mixes."""
