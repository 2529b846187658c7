"""Tasks on which our estimators stand beside textbook alternatives, at the same guarantee.

A file of this folder has the rows of one kind of estimators in a tuple TASKS, and
`benchmarks.bench_estimators` lists the files.  Neighbours replace one record, unless a method's
name says otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from accountant import calibrate
from mechanisms import Gaussian

# with scikit-learn 1.9.1 diffprivlib 0.6.6 cannot be imported, with 1.7.2 it can
DIFFPRIVLIB = (
    "left out diffprivlib: python -m pip install diffprivlib 'scikit-learn<1.8' "
    "(0.6.6 does not import under 1.9)"
)


DELTA = 1e-6


class Split(NamedTuple):
    """Features and targets to fit on, and to score with."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    @classmethod
    def last_fifth(cls, x: np.ndarray, y: np.ndarray, most: int) -> "Split":
        """Return the first ``most`` records, of which the last fifth is scored."""
        x, y = x[:most], y[:most]
        first = len(y) - len(y) // 5
        return cls((x[:first], y[:first]), (x[first:], y[first:]))


@lru_cache
def mu_of(epsilon: float) -> float:
    """Return the shift of Gaussian noise over its deviation that the guarantee allows in all."""
    return calibrate(Gaussian, epsilon=epsilon, delta=DELTA).loss.mu


class Kind(Enum):
    """What a method is in the table."""

    OURS = "ours"  # with its defaults
    PEER = "alternative"
    CONSTANT = "constant"  # one prediction for all records, with privacy
    FREE = "without privacy"


@dataclass(frozen=True)
class Method:
    """A way to fit: ``score(data, epsilon, seed)`` is that of the test part.

    It may return None where it cannot run, after a line on stderr that names the remedy.
    """

    name: str
    kind: Kind
    score: Callable[[Any, float, int], float | None]


@dataclass(frozen=True)
class Task:
    """Data, a measure whose perfect value is ``best``, and methods.

    ``load(seed, quick)`` returns the data of a seed, tiny and made up if quick, or None where the
    files are not at hand, after a line on stderr.
    """

    name: str
    measure: str
    best: float
    load: Callable[[int, bool], Any]
    methods: tuple[Method, ...]
    epsilons: tuple[float, ...] = (0.1, 1.0, 4.0)
    delta: float = DELTA
