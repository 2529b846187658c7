"""Classifiers: learn from runs a score that distinguishes two values, and fix a decision rule.

The Neyman-Pearson lemma says that the likelihood ratio is the best score; these estimate it.
Learning affects power, never validity: the test uses other runs.  It may import `claims`, `runs`,
`neighbours`, `statistics` and `values`; it does not know `known_densities`.
"""
