"""Reports: tables, figures and HTML pages of what a plan costs and what a ledger has spent.

No theorem stands behind this room: its numbers come from `accountant.accountants` and
`accountant.book`.  Only `accountant.cli` and packages above the accountant import it.
"""
