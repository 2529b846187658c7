"""A checker of certificates that trusts nothing of the project: python-flint and these files.

``verify`` computes delta(epsilon) of the plan in a proof from the definitions of its releases, in
balls of Arb (they hold the true number, whatever the rounding), and answers PROVED only where
delta(upper) <= delta <= delta(lower) follows.  Only numbers are taken from the file, and a badly
chosen one can only fail to prove: every theorem stands beside the lines that use it.
"""

from .plan import NoProof, ProofError, Verdict
from .verdict import verify

__all__ = ["NoProof", "ProofError", "Verdict", "verify"]
