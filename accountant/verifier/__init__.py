"""A checker of certificates: it trusts python-flint and the files of this folder, nothing else.

A certificate is a file (`document`) that states a plan, a delta and an interval of epsilon.  The
plan is read into pairs of distributions (`plan`, `releases`), and `verdict` proves the two ends of
the interval in ball arithmetic.  A receipt (`receipt`) is a signed document with such a proof, and
what its author says beside it.  docs/proofs/trusted-base.md lists what remains trusted.
"""

from .document import NoProof, ProofError, Receipt, Verdict
from .receipt import check_receipt
from .receipt_words import receipt_words

__all__ = [
    "NoProof",
    "ProofError",
    "Receipt",
    "Verdict",
    "check_receipt",
    "receipt_words",
    "verify",
]


def verify(document: bytes) -> Verdict:
    """Return whether delta(upper) <= delta < delta(lower) was proved for the plan in the file.

    `ProofError` is raised where the bytes are not a proof file at all.
    """
    from .verdict import verify as judge  # python-flint is needed from here on

    return judge(document)
