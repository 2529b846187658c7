"""Formats: plans as TOML files with budgets and requests, and as events of
dp-accounting and Opacus.

No theorem stands behind this room: a translation is exact or refused.  `accountant.book`,
`accountant.reports`, `accountant.cli` and packages above the accountant may import it.
"""
