"""Amplification: losses of releases by sampling, by shuffling, and against groups of records.

Sampling is Balle, Barthe & Gaboardi (2018), Theorems 8, 9 and 11; shuffling is Feldman, McMillan &
Talwar (2021), Theorem 3.1; groups are Dong, Roth & Su (2022), Theorem 2.14. The room imports
`composition` and the rooms below, not `accountants`; `planning`, `ledger` and every room above
may import it.
"""
