"""Budgets to look at: one self-contained page of a plan, one of a ledger's history."""
