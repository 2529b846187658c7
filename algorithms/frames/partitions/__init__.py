"""Frames in partitions, reduced where they lie."""
