"""Losses: the cost of one release, as a privacy profile with its reverse, moments and cumulants.

Domination of profiles survives adaptive composition (Zhu, Dong & Wang 2022, Theorem 10).
The room imports `plans` and the rooms below; `composition` and every room above may import it.
"""
