"""The commands of ``python -m accountant``; nothing heavy is imported before one runs."""
