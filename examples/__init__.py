"""Runs of whole audits: `python -m examples.NAME`."""
