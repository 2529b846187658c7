"""The durable ledger: a log that only grows, what it says was spent, and the gate that writes it.

`accountant.store` opens a book; here are its parts: where it is kept (`sqlite`, `postgres`), the
hash chain (`chain`, `log`, `pin`, `verifying`), and what is in it (`accounts`, `answers`, `runs`).
"""
