"""``python -m verifier FILE`` prints the verdict on a proof file, or on a receipt.

Of a proof it is one line, of a receipt one screen.  This works in a folder that has a copy of this
package, ``verifier``, and nothing else.  It is ``dp-attest-verify FILE`` where that distribution is
installed; where the whole project is, the package is ``accountant.verifier``.

The exit status is 0 if both ends of epsilon are proved, and of a receipt if no line says PROBLEM;
1 if not; and 2 if the file cannot be read, is no proof and no receipt, or was changed.
"""

import argparse
import sys

from . import check_receipt, receipt_words, verify
from .receipt import MEBIBYTES, PAYLOAD_TYPE, read_public_key


def main() -> int:
    """Print the verdict on the file that the command names, and return the exit status."""
    parser = argparse.ArgumentParser(description="Check a proof or a receipt of dp-attest.")
    parser.add_argument("file", metavar="FILE", help="a proof, or a receipt")
    parser.add_argument(
        "--key", metavar="FILE", help="refuse a receipt of another author than that of FILE (.pub)"
    )
    options, key = parser.parse_args(), None
    try:
        with open(options.file, "rb") as file:
            document = file.read(MEBIBYTES * 2**20 + 1)  # a byte more than the longest allowed
        if options.key is not None:
            key = read_public_key(options.key)
        if key is not None or PAYLOAD_TYPE.encode() in document:
            receipt = check_receipt(document, key)
            print(receipt_words(receipt, is_key_known=key is not None))
            return 1 if receipt.problems else 0
        verdict = verify(document)
    except ImportError:
        print("no verdict: pip install python-flint, its one need", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:  # a ProofError is one
        print(f"refused: {error}", file=sys.stderr)
        return 2
    print(verdict.word, [verdict.lower, verdict.upper], verdict.digest, verdict.reason)
    return 0 if verdict.word == "PROVED" else 1


if __name__ == "__main__":
    sys.exit(main())
