"""Formats: plans as TOML files with budgets and requests; events of dp-accounting; what Opacus,
Flower and jax-privacy counted, tied to the loader that drew; our accountants inside the first two.

No theorem stands behind this room but for `added_samples`: a translation is exact, an upper bound
that says so, or refused.  Other libraries are imported when they are used.  `accountant.book`,
`accountant.reports`, `accountant.cli` and packages above the accountant may import it.
"""
