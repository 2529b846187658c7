"""Performance: the project's algorithms on the hard families, next to bound and theorem.

It may import `problems`, `bounds` and the rooms below; it does not know `checks`.
"""
