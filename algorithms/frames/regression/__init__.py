"""Least squares of a column of a frame on others."""
