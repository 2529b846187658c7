"""Results: the row of a report, its file format, and the facts that reports show.

It may import `algorithm_runs`, `attacks` and the rooms below; every room that makes rows imports
it.
"""
