"""A checker of certificates that trusts nothing of the project: python-flint and these files."""

from .document import NoProof, ProofError, Verdict

__all__ = ["NoProof", "ProofError", "Verdict", "verify"]


def verify(document: bytes) -> Verdict:
    """Return whether delta(upper) <= delta < delta(lower) was proved; `ProofError`: no proof."""
    from .verdict import verify as judge  # python-flint is needed from here on

    return judge(document)
