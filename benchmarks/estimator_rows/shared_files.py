"""Large data sets in files of their own, from whose training parts defaults were chosen.

No row of the bench is on them: its data come from packages and simulators.
"""

import csv
import gzip
from functools import lru_cache

import numpy as np

from benchmarks.estimator_rows import Split
from experiments.datasets import COVTYPE, SHARED, covtype, present

ADULT = "adult/adult.csv.gz"
# public bounds of Adult's numbers, stated without the data; what lies outside is clipped
BOUNDS = {
    "age": (0, 100), "fnlwgt": (0, 1_500_000), "education_num": (0, 16),
    "capital_gain": (0, 100_000), "capital_loss": (0, 5_000), "hours_per_week": (0, 100),
}  # fmt: skip


def scaled(values, low, high):
    """Numbers between their bounds as numbers from -1 to 1."""
    return np.clip(2 * (values - low) / (np.asarray(high) - low) - 1, -1, 1)


def one_hot(values):
    """A column of 0 and 1 for each value, which are public."""
    found, index = np.unique(values, return_inverse=True)
    return np.eye(found.size)[index]


def made_up(seed, classes=2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (2000, 12))
    y = np.digitize(x[:, :3] @ [1.0, -0.5, 0.3], np.linspace(-0.5, 0.5, classes + 1)[1:-1])
    return Split((x[:1500], y[:1500]), (x[1500:], y[1500:]))


def adult(seed, quick):
    """Numbers between bounds, categories as columns; the published split."""
    if quick:
        return made_up(seed)
    return adult_parts() if present(SHARED, ADULT) else None


@lru_cache
def adult_parts():
    """Both parts of the published split; every seed has the same."""
    with gzip.open(SHARED / ADULT, "rt", newline="") as lines:
        rows = [{key.replace("-", "_"): value for key, value in row.items()}
                for row in csv.DictReader(lines)]  # fmt: skip
    columns = []
    for name in rows[0]:
        values = [row[name].strip() for row in rows]
        if name in BOUNDS:
            columns.append(scaled(np.array(values, float), *BOUNDS[name])[:, None])
        elif name not in {"income", "split"}:
            columns.append(one_hot(values))
    x, y = np.hstack(columns), np.array([row["income"].strip() == ">50K" for row in rows]) * 1
    train = np.array([row["split"] == "train" for row in rows])
    return Split((x[train], y[train]), (x[~train], y[~train]))


def cover(seed, quick, classes=2):
    """Class 2 against the rest, or all seven; 74,000 records to fit on."""
    if quick:
        return made_up(seed, min(classes, 3))
    return cover_parts(classes) if present(SHARED, COVTYPE) else None


@lru_cache
def cover_parts(classes):
    """Both parts; every seed has the same."""
    x, y = covtype(SHARED)
    x = np.hstack([2 * x[:, :10] - 1, x[:, 10:]])
    return parted(x, (y == 2) * 1 if classes == 2 else y, 74_000, 0)


def parted(x, y, records, seed):
    """A random part of so many records to fit on, and the rest."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:records], order[records:]
    return Split((x[train], y[train]), (x[test], y[test]))
