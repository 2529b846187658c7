"""The command line ``dp-attest audit``: one file per command, options in `options`.

The top room: it may import every room, and no room imports it.
"""
