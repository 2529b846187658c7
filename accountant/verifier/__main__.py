"""``python -m verifier FILE`` prints the verdict on a proof file in one line.

This works in a folder that has a copy of this package, ``verifier``, and nothing else; where the
whole project is installed the package is ``accountant.verifier``.  The exit status is 0 if both
ends of epsilon are proved, 1 if not both are, and 2 if the file cannot be read or is no proof.
"""

import sys

from . import ProofError, verify


def main() -> int:
    """Print the verdict on the file that the command names, and return the exit status."""
    try:
        with open(sys.argv[1], "rb") as file:
            verdict = verify(file.read(2**20 + 1))  # a byte more than the longest file allowed
    except ImportError:
        print("no verdict: pip install python-flint, its one need", file=sys.stderr)
        return 2
    except (IndexError, OSError, ProofError) as error:
        print(f"no proof: {error}", file=sys.stderr)
        return 2
    print(verdict.word, [verdict.lower, verdict.upper], verdict.digest, verdict.reason)
    return 0 if verdict.word == "PROVED" else 1


sys.exit(main())
