"""Reports: what is said of results, and how it looks in a terminal.

It may import `runner`, `utility` and the rooms below; only `formats` and `cli` import it.
"""
