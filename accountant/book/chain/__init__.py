"""The chain of hashes: entries, the index of keys in them, signatures, and a pinned end."""
