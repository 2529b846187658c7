"""Cli: the commands of ``dp-attest account``, from arguments to text and exit status.

No theorem stands behind this room: it prints what the rooms below compute.  It is the top room of
the package: only `accountant.__main__` and packages above the accountant import it.
"""
