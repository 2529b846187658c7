"""Convex optimisation where the labels are private and the features public.

Behind it stands "Convex Optimization with Local Label Differential Privacy", Theorem 1 and
Algorithm 1.  It imports `algorithms.base` and no other family; only the packages above and
users import it.
"""
