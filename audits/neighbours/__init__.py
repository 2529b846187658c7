"""Neighbours."""
