"""Synthetic workloads: the Lublin-Feitelson model, Tsafrir's estimates, and mixes of given shapes."""
