"""Ledger: the gates to private data, which charge a budget before they read it.

A fixed plan is followed by `Ledger`; adaptive spending adds up by a filter theorem: Rogers, Roth,
Ullman & Vadhan (2016), Theorem 4.1 (pure), Feldman & Zrnic (2021), Theorem 4.3 (zCDP, Rényi), and
Smith & Thakurta (2022) (GDP).  Rooms above may import this one: `formats`, `book`, `reports` and
`cli`, and the packages above the accountant; `planning` may not.
"""
