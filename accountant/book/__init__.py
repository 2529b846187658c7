"""Book: privacy budgets kept in a database, spent by many processes over months.

Totals add up by the filter theorems of `accountant.ledger`: Rogers, Roth, Ullman & Vadhan (2016),
Theorem 4.1, and Feldman & Zrnic (2021), Theorem 4.3.  A log in which each entry hashes the one
before it shows later changes.  Only `accountant.reports` and `accountant.cli` import this room,
and code outside the package does so through the public names of `accountant`.
"""
