"""Neighbours: which values to compare, from named patterns to chains of data sets.

Patterns after Ding, Wang, Wang, Zhang & Kifer (2018), hard data after Casacuberta, Shoemate,
Vadhan & Wagaman (2022).  It may import only `statistics` and `values`; attacks and algorithm runs
import it.
"""
