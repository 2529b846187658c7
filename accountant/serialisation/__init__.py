"""Serialisation: plans as plain values and JSON documents, and the registry of their kinds.

No theorem stands behind this room: a document is translated exactly or refused.  Accountants, which
write proofs with the plan in them, and everything above may import it.
"""
