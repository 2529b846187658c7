"""Honest specimens: mechanisms at their claim, and programs that look like broken ones.

They may import `specimen`; `catalogue` lists them.
"""
