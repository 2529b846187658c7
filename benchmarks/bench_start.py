"""What starting costs: imports and help, beside numpy's import and an empty interpreter."""

import subprocess
import sys
import time

import numpy as np

REPEATS = 11


def seconds(*words):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main():
    empty, numpy = seconds("-c", "pass"), seconds("-c", "import numpy")
    print(f"start-up, median of {REPEATS}: empty {empty:.3f} s, import numpy {numpy:.3f} s")
    rows = (
        (("-c", "import accountant"), 0.3, numpy, "import numpy"),
        (("-c", "import mechanisms"), 0.3, numpy, "import numpy"),
        (("-m", "audits", "--help"), 0.4, empty, "an empty interpreter"),
    )
    for words, aim, peer, name in rows:
        took = seconds(*words)
        shown = " ".join(words)
        print(f"  python {shown:24} {took:.3f} s (aim {aim}), {took / peer:.2f} x {name}")


if __name__ == "__main__":
    main()
