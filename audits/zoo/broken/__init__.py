"""Broken specimens by kind: noise, selections, side channels, algorithms, programs.

They may import `specimen` and the honest specimens; `catalogue` lists them.
"""
