"""California housing (1990 census; Pace & Barry 1997): the real data set that audits train on.

Each of the 20,640 records is a group of blocks of the census.  All columns are scaled to [-1, 1] by
public bounds, since bounds taken from the data would not be private.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import final

import numpy as np

from accountant.errors import ParameterError
from accountant.numerics import Array

# Least and largest value of each number: from the map of California, the census's own limits, and
# round numbers, not from the data.  What lies outside is clipped.  Rooms, bedrooms, people and
# households are counts per record; ages are in years, incomes in 10,000 dollars.
BOUNDS = {
    "longitude": (-125.0, -114.0),
    "latitude": (32.0, 42.0),
    "housing_median_age": (0.0, 52.0),
    "total_rooms": (0.0, 8000.0),
    "total_bedrooms": (0.0, 1600.0),
    "population": (0.0, 4000.0),
    "households": (0.0, 1600.0),
    "median_income": (0.0, 10.0),
}
TARGET, TARGET_BOUNDS = "median_house_value", (0.0, 500_001.0)  # dollars
PLACES = ("<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND")  # values of ocean_proximity
RECORDS = 20_640  # of the complete file
TRAIN = 0.8  # share of the records in the training part


@final
@dataclass(frozen=True, slots=True)
class Housing:
    """Features and target in [-1, 1], as (features, target) of a training and of a test part."""

    names: tuple[str, ...]
    train: tuple[Array, Array]
    test: tuple[Array, Array]

    def neighbour(self) -> tuple[Array, Array]:
        """The training data with the first record replaced by the one that differs most from it."""
        x, y = self.train[0].copy(), self.train[1].copy()
        # Every feature and the target move to the bound, -1 or 1, that is farther away.
        x[0] = np.where(x[0] > 0, -1.0, 1.0)
        y[0] = -1.0 if y[0] > 0 else 1.0
        return x, y


def load() -> Housing:
    """Read the data, scale them, and split them; a missing entry becomes the middle of its bounds.

    Each value of ``ocean_proximity`` becomes a feature of zeros and ones, and the last feature is
    the constant 1.  The split is the same every time.
    """
    # A wheel has the data inside the package, a checkout in the folder next to it.
    package = Path(str(resources.files("audits")))
    inside = package / "data" / "housing.csv.gz"
    checkout = package.parent / "examples" / "data" / "california_housing" / "housing.csv.gz"
    with gzip.open(inside if inside.exists() else checkout, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    if len(rows) != RECORDS:
        raise ParameterError("housing.csv.gz", f"{len(rows)} records", f"{RECORDS} records")
    columns = [_scaled(rows, name, bounds) for name, bounds in BOUNDS.items()]
    proximities = np.array([row["ocean_proximity"] for row in rows])
    columns += [(proximities == proximity).astype(float) for proximity in PLACES]
    x = np.column_stack([*columns, np.ones(len(rows))])
    y = _scaled(rows, TARGET, TARGET_BOUNDS)
    order = np.random.default_rng(1990).permutation(len(rows))
    train_rows, test_rows = np.split(order, [int(TRAIN * len(rows))])
    return Housing(
        (*BOUNDS, *PLACES, "constant"), (x[train_rows], y[train_rows]), (x[test_rows], y[test_rows])
    )


def _scaled(rows: list[dict[str, str]], name: str, bounds: tuple[float, float]) -> Array:
    """One column, mapped linearly from its bounds to [-1, 1] and clipped."""
    low, high = bounds
    column = np.array([float(row[name] or "nan") for row in rows])
    scaled: Array = np.clip(2 * (column - low) / (high - low) - 1, -1.0, 1.0)
    return np.nan_to_num(scaled, nan=0.0)
