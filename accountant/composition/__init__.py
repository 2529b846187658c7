"""Composition: certified epsilon and delta of many losses, by cumulants and contour integrals.

The proof of the bounds is `docs/proofs/contour.md`; the method is that of characteristic functions
(Zhu, Dong & Wang 2022). The room imports `losses` and the rooms below; `accountants`,
`amplification` and every room above may import it.
"""
