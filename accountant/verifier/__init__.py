"""A checker of certificates that trusts nothing of the project: python-flint and these files.

``verify`` computes delta(epsilon) from the definitions of a plan's releases, in balls of Arb;
PROVED says that delta(upper) <= delta < delta(lower) follows.  The theorems stand beside their use.
"""

from .plan import NoProof, ProofError, Verdict
from .verdict import verify

__all__ = ["NoProof", "ProofError", "Verdict", "verify"]
