"""Known densities."""
