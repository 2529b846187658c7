"""Baselines from other papers, for comparison: noisy hard thresholding on machines' data.

Behind it stands Cai, Wang & Zhang (2021).  It imports `algorithms.base` and no other family;
only the packages above and users import it.
"""
