"""``python -m verifier FILE``: one line; exit status 0 PROVED, 1 not both ends, 2 a wrong file."""

import sys

from . import ProofError, verify


def main() -> int:
    """Print the verdict on the file that the command names, and return the exit status."""
    try:
        with open(sys.argv[1], "rb") as file:
            verdict = verify(file.read(2**20 + 1))
    except ImportError:
        print("no verdict: pip install python-flint, its one need", file=sys.stderr)
        return 2
    except (IndexError, OSError, ProofError) as error:
        print(f"no proof: {error}", file=sys.stderr)
        return 2
    print(verdict.word, [verdict.lower, verdict.upper], verdict.digest, verdict.reason)
    return 0 if verdict.word == "PROVED" else 1


sys.exit(main())
