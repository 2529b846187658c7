"""False alarms of the guess test on claims that are exactly true: counts beside binomial bands.

Every kind is at its claim, so that FALSIFIED at 95 % is a false alarm; at most one in 20 is allowed.
"""

import contextlib
import io
import itertools
import math
import warnings

import numpy as np
from scipy.stats import binom

from accountant import ApproxLoss, GaussianLoss, PureLoss
from audits import Outcome, audit
from audits.zoo.honest.programs import specimens_by_kind
from benchmarks.measure import beside, options

ONE = PureLoss(1.0)
KEEP = 1 / (1 + math.exp(-1.0))
CONFIDENCE = 0.95
EXCEEDED = 1e-3  # the chance that the count of a right audit is above the edge of its band


def laplace(value, rng, size):
    return value + rng.laplace(size=size)


def response(answer, rng, size):
    return np.where(rng.random(size) < KEEP, answer, 1 - answer)


def leaky(answer, rng, size):
    return np.where(rng.random(size) < 0.01, 2 + answer, response(answer, rng, size))


def mixed(answer, rng):
    said = int(response(answer, rng, 1)[0])
    return {"said": ("no", "yes")[said], "noise": rng.random(3)} if rng.random() < 0.5 else (said,)


def hidden(width):
    """Numbers of which one, at a place of its own, is a Laplace release."""

    def release(value, rng, size):
        noise = rng.laplace(size=(size, width))
        noise[:, 2 * width // 3] += value
        return noise

    return release


def dense(width):
    """Numbers that all move under Gaussian noise, by a norm of 1."""
    direction = np.cos(np.arange(width) ** 2)
    direction /= np.linalg.norm(direction)

    def release(value, rng, size):
        return value * direction + rng.normal(size=(size, width))

    return release


def bits(width):
    """Answers of which one is a binary response and the others are coins."""

    def release(answer, rng, size):
        coins = rng.integers(2, size=(size, width))
        coins[:, width // 2] = response(answer, rng, size)
        return coins

    return release


KINDS = {
    "a number": (laplace, ONE, 2000),
    "atoms": (response, ONE, 2000),
    "atoms with leaks": (leaky, ApproxLoss(1.0, 0.01), 2000),
    "mixed objects": (mixed, ONE, 400),
    "2 numbers": (hidden(2), ONE, 1000),
    "64 bits": (bits(64), ONE, 600),
    "100 numbers": (hidden(100), ONE, 1000),
    "100 bits": (bits(100), ONE, 1000),
    "100 numbers, a dense direction": (dense(100), GaussianLoss(1.0), 1000),
    "1,000 numbers": (hidden(1000), ONE, 600),
    "1,000 numbers, a dense direction": (dense(1000), GaussianLoss(1.0), 1000),
}


def alarms(name, sessions):
    """False alarms of so many sessions."""
    release, claim, runs = KINDS[name]
    found = (audit(release, (0, 1), claim, runs, CONFIDENCE, rng=s) for s in range(sessions))
    return sum(one.outcome is Outcome.FALSIFIED for one in found)


def alarms_of_programs(specimens, sessions):
    """False alarms of so many sessions of 1,000 runs, which the specimens share."""
    shares = zip(itertools.cycle(specimens), range(sessions), strict=False)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        found = [audit(one.implementation, one.pair, one.claim, 1000, CONFIDENCE, rng=seed)
                 for one, seed in shares]  # fmt: skip
    return sum(one.outcome is Outcome.FALSIFIED for one in found)


def within_band(name, count, sessions):
    """Print a count of false alarms beside the edge of its band; whether it is within it."""
    edge = binom.ppf(1 - EXCEEDED, sessions, 1 - CONFIDENCE)
    print(f"{name:34} {count}/{sessions} false alarms, {beside(count, edge, 'the edge')} of {edge:.0f}",
          flush=True)  # fmt: skip
    return count <= edge


def main():
    """Exit with status 1 where a kind has more false alarms than its band allows."""
    given = options(__doc__, seeds=200, programs=0)
    sessions = 2 if given.quick else given.seeds
    counts = {name: alarms(name, sessions) for name in KINDS}
    within = [within_band(name, count, sessions) for name, count in counts.items()]
    within.append(within_band("all", sum(counts.values()), sessions * len(KINDS)))
    of_programs = 2 if given.quick else given.programs  # sessions of each kind of the zoo's
    for kind, specimens in specimens_by_kind().items() if of_programs else ():
        count = alarms_of_programs(specimens, of_programs)
        within.append(within_band(f"programs: {kind}", count, of_programs))
    nominal = (1 - CONFIDENCE) * sessions
    edge = binom.ppf(1 - EXCEEDED, sessions, 1 - CONFIDENCE)
    print(f"a right audit exceeds an edge with chance {EXCEEDED:g}; that of {sessions} is "
          f"{beside(edge, nominal, 'the nominal count')}")  # fmt: skip
    raise SystemExit(not all(within))


if __name__ == "__main__":
    main()
