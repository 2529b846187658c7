"""How fast an audit runs, beside drawing alone, and the memory it takes beside one chunk of runs."""

import tracemalloc

import numpy as np

from accountant import GaussianLoss, PureLoss
from audits import audit
from benchmarks.measure import beside, options, seconds_of
from mechanisms import Laplace, registry

CHUNK = 1 << 15
SIGMA = 3.7306334


def bare_laplace(value, rng, size):
    return value + rng.laplace(size=size)


def bare_gaussian(value, rng, size):
    return value + rng.normal(scale=SIGMA, size=size)


def speed(name, draw, value, work, runs):
    """Print millions of runs a second, and their time beside that of the draws."""
    rng = np.random.default_rng(0)
    (alone,) = seconds_of(lambda: [draw(value, rng, CHUNK) for _ in range(max(1, runs // CHUNK))])
    seconds = work()
    print(f"  {name:62} {runs / seconds / 1e6:6.1f} M/s, {beside(seconds, alone, 'drawing alone')}",
          flush=True)  # fmt: skip


def main():
    given = options(__doc__, runs=1_000_000)
    runs = 33_000 if given.quick else given.runs
    print(f"audit of {runs:,} runs on one core, sampling included (aim: 20 M/s for Laplace)")
    for one in [cls.instances()[0] for cls in registry()][: 3 if given.quick else None]:
        speed(str(one), one.release, one.worst_pair()[0],
              lambda one=one: audit(one, runs=runs, rng=1).seconds, runs)  # fmt: skip
    for release, claim in ((bare_laplace, PureLoss(1.0)), (bare_gaussian, GaussianLoss(1 / SIGMA))):
        name = f"{release.__name__}, a black box"
        speed(name, release, 0.0, lambda release=release, claim=claim: audit(
            release, (0.0, 1.0), claim, runs=runs, rng=1).seconds, runs)  # fmt: skip
    tracemalloc.start()
    audit(Laplace(1.0), runs=10 * runs, rng=1)
    peak = tracemalloc.get_traced_memory()[1]
    print(f"  {10 * runs:,} runs of Laplace: at most {peak / 2**20:.1f} MiB, "
          f"{beside(peak, 8 * CHUNK, 'the outputs of one chunk')}")  # fmt: skip


if __name__ == "__main__":
    main()
