"""Known densities: the exact profile of a declared mechanism, and how many runs a test needs.

The hockey-stick divergence (Balle, Barthe & Gaboardi 2018) and the Neyman-Pearson lemma.  It may
import `claims`, `runs`, `neighbours`, `statistics` and `values`; it does not know `classifiers`.
"""
