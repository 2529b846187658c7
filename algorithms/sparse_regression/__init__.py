"""Sparse regression with private labels, private users or private records.

Behind it stands Wang & Xu (2021), Algorithms 1 to 5.  It imports `algorithms.base` and no other
family; only the packages above and users import it.
"""
