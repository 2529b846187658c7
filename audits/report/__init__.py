"""Reports: how results look in a terminal, as JUnit XML and as an HTML page.

It may import `runner`, `utility` and the rooms below; only `cli` imports it.
"""
