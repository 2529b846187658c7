"""Pytest support."""
