"""Accountants."""
