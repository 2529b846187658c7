"""Sparse regression."""
