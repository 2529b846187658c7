"""A checker of certificates that trusts nothing of the project: python-flint and these files.

A proof holds a plan, a delta, an interval [lower, upper] and numbers that make the check short.
``verify`` computes delta(epsilon) of the plan from the definitions of its releases, in balls of Arb
(they hold the true number, whatever the rounding), and answers PROVED only where delta(upper) <=
delta <= delta(lower) follows.  Only numbers are taken from the file, and a badly chosen number can
only fail to prove: every theorem stands beside the lines that use it.
"""

from .document import NoProof, ProofError, Verdict

__all__ = ["NoProof", "ProofError", "Verdict", "verify"]


def verify(document: bytes) -> Verdict:
    """Return the verdict on the bytes of a proof; `ProofError` where they are none."""
    from .verdict import verified  # from here on python-flint is needed

    return verified(document)
