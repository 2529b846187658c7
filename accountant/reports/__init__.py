"""Tables, plots and pages: what a plan costs, and what a ledger has spent."""
