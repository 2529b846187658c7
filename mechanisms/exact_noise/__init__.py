"""Exact noise."""
