"""Documents for readers outside: receipts, records for the public registry, model cards.

A receipt joins documents of all rooms, also findings of audits, which are JSON files: nothing here
imports the audits.  Its checker is `accountant.verifier.receipt`, which needs nothing from here.
"""
