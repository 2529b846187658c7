"""Utility."""
