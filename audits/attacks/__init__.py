"""Attacks: audits of one release, each an event or a score that may reveal the value.

The hypothesis-testing view of differential privacy (Kairouz, Oh & Viswanath 2015; Dong, Roth & Su
2022).  It may import `classifiers`, `known_densities`, `claims`, `runs`, `neighbours`,
`statistics` and `values`; it does not know `algorithm_runs`.
"""
