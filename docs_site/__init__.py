"""How the site is built from docs/, docstrings and notebooks; `make docs` runs it."""
