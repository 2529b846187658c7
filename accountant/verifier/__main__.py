"""``python -m verifier FILE``: one line; exit status 0 PROVED, 1 not all proved, 2 wrong file."""

import sys

from . import ProofError, verify


def main(names):
    """Print the verdict of each file."""
    worst = 0 if names else 2
    for name in names:
        try:
            with open(name, "rb") as file:
                found = verify(file.read(2**20 + 1))
        except (OSError, ProofError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            worst = 2
        else:
            line = f"{found.word}: epsilon in [{found.lower!r}, {found.upper!r}] at {found.delta!r}"
            print(line + (f"; {found.reason}" if found.reason else ""), f"; sha256 {found.digest}")
            worst = max(worst, int(found.word != "PROVED"))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
