"""Kinds of columns of a data frame: what is public of their values."""
