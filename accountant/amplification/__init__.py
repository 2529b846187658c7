"""Amplification."""
