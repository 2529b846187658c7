"""Information."""
