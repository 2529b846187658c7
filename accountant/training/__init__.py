"""Training: what a run of DP-SGD costs under the loader that it had, as a statement to file.

The plans are those of `accountant.amplification`; what users, microbatches and samples of fixed
size add is proved in `docs/proofs/training.md`. The room imports `planning` and the rooms below,
not `ledger`; `formats`, `reports` and `cli` may import it.
"""
