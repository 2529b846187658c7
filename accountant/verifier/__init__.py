"""A checker of certificates that trusts nothing of the project: python-flint and these files.

``verify`` computes delta(epsilon) of the plan in a proof from the definitions of its releases, in
balls of Arb (they hold the true number), and answers PROVED only where delta(upper) <= delta <
delta(lower) follows.  A badly chosen parameter can only fail: the theorems stand beside their use.
"""

from .plan import NoProof, ProofError, Verdict
from .verdict import verify

__all__ = ["NoProof", "ProofError", "Verdict", "verify"]
