"""Label privacy."""
