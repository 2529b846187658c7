"""What all families of algorithms share: estimators' bases, losses, thresholding, sums over rows.

Behind it stand empirical risk minimisation (Chaudhuri, Monteleoni & Sarwate 2011) and iterative
hard thresholding (Blumensath & Davies 2009).  Every family of algorithms imports this room; it
imports mechanisms and the accountant, and no family.
"""
