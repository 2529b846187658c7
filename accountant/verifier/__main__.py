"""``python -m verifier FILE``: one line; exit status 0 PROVED, 1 not both ends, 2 a wrong file."""

import sys

from . import ProofError, verify

try:
    with open(sys.argv[1], "rb") as file:
        found = verify(file.read(2**20 + 1))
except (IndexError, OSError, ProofError) as error:
    sys.exit(print(f"no proof: {error}", file=sys.stderr) or 2)
print(f"{found.word} [{found.lower!r}, {found.upper!r}] {found.digest} {found.reason}")
sys.exit(found.word != "PROVED")
