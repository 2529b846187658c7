"""What the benches share: seconds of work, how a ratio is printed, and the options."""

import argparse
import time
from collections.abc import Callable

import numpy as np


def seconds_of(work: Callable[[], object], repeats: int = 1) -> list[float]:
    """Return the seconds that each of some repeats takes."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def median_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the median seconds of a few repeats."""
    return float(np.median(seconds_of(work, repeats)))


def least_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least seconds of a few repeats."""
    return min(seconds_of(work, repeats))


def beside(measured: float, limit: float, name: str) -> str:
    """Return a ratio in the form that the tests look for."""
    return f"{measured / limit:.3g} x {name}"


def options(description: str, **sizes: int) -> argparse.Namespace:
    """Return the options of a bench: ``--quick``, and each of its sizes."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the script works")
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N",
                            help=f"{default:,} by default")  # fmt: skip
    return parser.parse_args()
