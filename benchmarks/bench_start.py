"""What starting costs: imports and help, beside numpy's import and an empty interpreter."""

import subprocess
import sys

from benchmarks.measure import beside, median_seconds, options


def main():
    given = options(__doc__, repeats=11)
    repeats = 1 if given.quick else given.repeats

    def seconds(*words):
        command = [sys.executable, *words]
        return median_seconds(
            lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), repeats
        )

    empty, numpy = seconds("-c", "pass"), seconds("-c", "import numpy")
    print(f"start-up, median of {repeats}: empty {empty:.3f} s, import numpy {numpy:.3f} s")
    rows = (
        (("-c", "import accountant"), 0.3, numpy, "import numpy"),
        (("-c", "import mechanisms"), 0.3, numpy, "import numpy"),
        (("-m", "audits", "--help"), 0.4, empty, "an empty interpreter"),
    )
    for words, aim, peer, name in rows:
        took = seconds(*words)
        shown = " ".join(words)
        print(f"  python {shown:24} {took:.3f} s (aim {aim}), {beside(took, peer, name)}")


if __name__ == "__main__":
    main()
