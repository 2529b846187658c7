"""The commands of ``python -m audits``, one a file; nothing heavy is imported before one runs."""
