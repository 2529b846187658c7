"""Families of simulated records; each seed draws its own coefficients, features and noise.

So no setting can be tuned to these data: `--first 100` of the bench draws others of the same
families.  Features lie in [-1, 1], the only bound that an estimator knows.
"""

from functools import lru_cache

import numpy as np
from scipy.special import expit

from benchmarks.estimator_rows import Split

RECORDS, FEATURES = 25_000, 10
RARE = 0.02  # share of records that have a rare feature, or are of a rare class


def uniform(rng, records=RECORDS, features=FEATURES):
    return rng.uniform(-1, 1, (records, features))


def heavy_tails(rng):
    """Most features are small, and some are at their bound."""
    return np.clip(rng.standard_t(2, (RECORDS, FEATURES)) / 10, -1, 1)


def collinear(rng):
    """Ten features that are mixtures of three, and a little of their own."""
    mixed = uniform(rng, features=3) @ rng.normal(size=(3, FEATURES))
    return np.clip((mixed + 0.1 * rng.normal(size=mixed.shape)) / 4, -1, 1)


def one_hot(rng):
    """Six columns of ten categories, of which some are rare."""
    shares = [np.sort(rng.dirichlet(np.full(10, 0.5))) for _ in range(6)]
    return np.hstack([np.eye(10)[rng.choice(10, RECORDS, p=share)] for share in shares])


def loose_bounds(rng):
    """Columns that use from all of their bound to .003 of it."""
    return uniform(rng) * rng.permutation(np.geomspace(1, 0.003, FEATURES))


def imbalanced(rng):
    """A feature that few records have; of classifications few records are positive too."""
    x = uniform(rng)
    x[:, 0] = np.where(rng.random(RECORDS) < RARE, 1.0, -1.0)
    return x


def wide(rng):
    """Many features for few records."""
    return uniform(rng, 6_250, 500)


FAMILIES = {
    "heavy tails": heavy_tails, "collinear": collinear, "one-hot": one_hot,
    "loose bounds": loose_bounds, "imbalanced": imbalanced, "wide": wide,
}  # fmt: skip


def signal_of(rng, x):
    """A linear function of standardised features, of which at most ten matter; its variance is 1."""
    coefficients = np.zeros(x.shape[1])
    coefficients[rng.permutation(x.shape[1])[:10]] = rng.normal(size=10)
    if x.shape[1] == 60:  # every category has its own effect
        coefficients = rng.normal(size=60)
    used = x.std(axis=0)
    signal = x @ (coefficients / np.where(used > 0, used, 1.0))
    return (signal - signal.mean()) / signal.std()


@lru_cache(maxsize=8)
def parts(name, seed, quick, classes):
    """The training part and the test part of a seed; few records if quick.

    Targets are numbers from -1 to 1, or with ``classes`` 0 and 1.
    """
    rng = np.random.default_rng([seed, list(FAMILIES).index(name)])
    x = FAMILIES[name](rng)
    signal = signal_of(rng, x)
    if classes:
        # The rare class has the largest scores, which the noise of the logistic law hides in part.
        shift = 3 * np.quantile(signal, 1 - RARE) if name == "imbalanced" else 0.3 * rng.normal()
        y = (rng.random(len(x)) < expit(3 * signal - shift)) * 1
    else:
        noise = rng.standard_t(2.5, len(x)) if name == "heavy tails" else rng.normal(size=len(x))
        y = signal + 0.4 * noise
        y = np.clip(0.2 * rng.normal() + y / 4, -1, 1)
    return Split.last_fifth(x, y, most=600 if quick else len(y))
