"""Base classes of related mechanisms: one file for each family.

Additive noise and selection (Dwork & Roth 2014, Chapter 3), frequency oracles (Wang, Blocki, Li &
Jha 2017), unbiased reports of a mean (Duchi, Jordan & Wainwright 2018), post-processing, and what
matrix mechanisms are made of (Denisov et al. 2022).
Mechanism files import this room; it imports `mechanisms.base` and `mechanisms.exact_noise`.
"""
