"""Algorithm runs."""
