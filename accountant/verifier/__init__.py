"""A checker of certificates that trusts nothing of the project: python-flint and these files.

``verify`` reads a proof: a plan, a delta, an interval [lower, upper] and numbers that make the
check short.  It computes delta(epsilon) of the plan from the definitions of its releases, in balls
of Arb (intervals that hold the true number, whatever the rounding), and answers PROVED only where
delta(upper) <= delta <= delta(lower) follows.  Nothing but numbers is taken from the file, and a
number there can only fail to prove: no theorem below rests on one being well chosen.
"""

from .document import NoProof, ProofError, Verdict

__all__ = ["NoProof", "ProofError", "Verdict", "verify"]


def verify(document: bytes) -> Verdict:
    """Return the verdict on the bytes of a proof; `ProofError` where they are none."""
    from .verdict import verified  # python-flint is needed from here on

    return verified(document)
