"""``python -m verifier FILE``: one line; exit status 0 PROVED, 1 not both ends, 2 a wrong file."""

import sys

from . import ProofError, verify

try:
    with open(sys.argv[1], "rb") as file:
        word, reason, low, high, *_, digest = verify(file.read(2**20 + 1))
except (ImportError, IndexError, OSError, ProofError) as error:
    lacks = isinstance(error, ImportError) and "no verdict: pip install python-flint, its one need"
    sys.exit(print(lacks or f"no proof: {error}", file=sys.stderr) or 2)
sys.exit(print(word, [low, high], digest, reason) or word != "PROVED")
