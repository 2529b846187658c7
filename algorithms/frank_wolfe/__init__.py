"""Private Frank-Wolfe: a convex loss over a polytope or another convex set.

Behind it stands Talwar, Thakurta & Zhang (2015), Algorithm 2 and Theorems 2.2 and 2.6.  It
imports `algorithms.base` and no other family; only the packages above and users import it.
"""
