"""False alarms of `audit_timing` on honest releases of arrays, with the real clock.

    .venv/bin/python -m benchmarks.bench_timing --sessions 2000

Each session audits 40 pairs at confidence .90, so that .10 of the sessions may be alarms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest

from audits.attacks.timing import audit_timing
from audits.claims.findings import Outcome
from benchmarks.measure import beside, options

NUMBERS, PAIRS, NOMINAL = 1_000, 40, 0.1


def noisy_sum(value: Any, rng: np.random.Generator) -> float:
    """One number, called once a run."""
    return float(value.sum() + rng.laplace())


def noisy_mean(value: Any, rng: np.random.Generator, size: int) -> Any:
    """One number for each run, all at once."""
    return value.mean() + rng.laplace(scale=1e-3, size=size)


def noisy_vector(value: Any, rng: np.random.Generator) -> Any:
    """All numbers with noise."""
    return value + rng.normal(size=value.shape)


RELEASES: tuple[Callable[..., Any], ...] = (noisy_sum, noisy_mean, noisy_vector)


def false_alarms(release: Callable[..., Any], sessions: int) -> int:
    """Sessions that call an honest release falsified."""
    alarms = 0
    for seed in range(sessions):
        rng = np.random.default_rng([seed, 1])
        value = rng.random(NUMBERS)
        neighbour = value.copy()
        neighbour[int(rng.integers(NUMBERS))] = 1.0
        found = audit_timing(release, (value, neighbour), PAIRS, 1, 1 - NOMINAL, seed)
        alarms += found.outcome is Outcome.FALSIFIED
    return alarms


def main() -> None:
    """Print one line a release, and one for all."""
    given = options(__doc__, sessions=1_000)
    sessions, total = 10 if given.quick else given.sessions, 0
    for release in RELEASES:
        alarms = false_alarms(release, sessions)
        total += alarms
        print(_line(release.__name__, alarms, sessions))
    print(_line("all", total, sessions * len(RELEASES)))


def _line(name: str, alarms: int, sessions: int) -> str:
    low, high = binomtest(alarms, sessions).proportion_ci(0.95)
    edge = binom.ppf(1 - 1e-3, sessions, NOMINAL)
    return (
        f"{name:14} {alarms:5} of {sessions:6}: {alarms / sessions:.3f} [{low:.3f}, {high:.3f}], "
        f"at most {edge:.0f} with chance .999 "
        f"({beside(edge, NOMINAL * sessions, 'the nominal count')})"
    )


if __name__ == "__main__":
    main()
