"""Values of a pair: copied, compared and described, without a word of the records in them.

It knows nothing of audits; `claims`, `runs` and the rooms above use it.
"""
