"""Proofs of certificates: written for a checker that shares no code with what is proved.

The road and its parameters are chosen here; the theorems are those of `docs/proofs/contour.md`. The
room imports `serialisation` and the rooms below it; `accountants` and every room above may import
it.
"""
