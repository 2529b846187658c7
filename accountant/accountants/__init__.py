"""Accountants: bounds on the epsilon and delta of a plan, one class for each composition theorem.

Each module names its theorem; `Tight` is the tightest, proved in `docs/proofs/contour.md`. The
room imports `composition` and the rooms below, not `amplification`; `planning`, `ledger` and every
room above may import it.
"""
