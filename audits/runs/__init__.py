"""Runs: draw outputs of a release many times, in pieces that any executor can draw.

It may import only `statistics`; classifiers, attacks and algorithm runs import it.
"""
