"""Runs: draw outputs of a release many times, in pieces that any executor can draw.

It may import only `statistics` and `values`; classifiers, attacks and algorithm runs import it.
"""
