"""California housing (1990 census; Pace & Barry 1997): the real data, and facts of a fit on them.

Each of the 20,640 records is a group of blocks of the census.  All columns are scaled to [-1, 1] by
public bounds, since bounds taken from the data would not be private.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, final

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


def data_file() -> Path:
    """The file: inside the package in a wheel, in the folder next to it in a checkout."""
    package = Path(str(resources.files("audits")))
    inside = package / "data" / "housing.csv.gz"
    checkout = package.parent / "examples" / "data" / "california_housing" / "housing.csv.gz"
    return inside if inside.exists() else checkout


def load() -> Housing:
    """Read the data, scale them, and split them; a missing entry becomes the middle of its bounds.

    Each value of ``ocean_proximity`` becomes a feature of zeros and ones, and the last feature is
    the constant 1.  The split is the same every time.
    """
    with gzip.open(data_file(), "rt", newline="") as lines:
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


def algorithm_facts(
    lasso: Any, data: Housing, result: Any, claim: tuple[float, float]
) -> Iterator[tuple[str, str]]:
    """(name, value) facts of the row of a private Lasso regression that was replayed and attacked.

    ``lasso`` is the fitted estimator, ``result`` its `AlgorithmAudit`, and ``claim`` the (epsilon,
    delta) that it claims to cost.
    Privacy losses were sampled by runs, some of them with tilted noise, which makes large losses
    frequent and gives each run a weight; mean, deviation and largest loss are those of the others.
    """
    from sklearn.linear_model import Lasso
    from sklearn.metrics import r2_score

    (x, y), (x_test, y_test) = data.train, data.test
    # A fit without privacy, to compare with; alpha is the weight of its penalty.
    non_private = Lasso(alpha=0.003, fit_intercept=False).fit(x, y)
    part = result.plan.part
    yield "plan", f"{result.plan.count} x {part!r}"
    yield (
        "rounds",
        f"{result.plan.count} (the utility bound's optimum T* is {lasso.best_rounds(x.shape)})",
    )
    yield "records", f"{len(x):,} to fit, {len(x_test):,} to test, {x.shape[1]} features"
    yield "test R2, private", f"{r2_score(y_test, lasso.predict(x_test)):.3f} at {claim}"
    yield (
        "test R2, scikit-learn",
        f"{r2_score(y_test, non_private.predict(x_test)):.3f}, no privacy",
    )
    yield "replay", result.replayed.witness
    yield "leak free, on plan", f"{result.replayed.leak_free}, {result.replayed.on_plan}"
    unchecked = "; ".join(result.replayed.unchecked) or "nothing"
    yield "sound", f"{result.replayed.sound}; not checked: {unchecked}"
    losses, untilted_losses = result.losses, result.losses[result.untilted]
    drawn = (
        f"{losses.size - untilted_losses.size} of them drawn where losses are rare, and weighted"
    )
    yield "privacy losses", f"{losses.size} runs against one extreme record, {drawn}"
    if untilted_losses.size:
        yield "mean, deviation", f"{untilted_losses.mean():.4f}, {untilted_losses.std():.4f}"
        yield (
            "largest loss",
            f"{untilted_losses.max():.4f} of the epsilon {claim[0]:g} that was paid",
        )
        # The largest epsilon at which the samples show a delta above 1e-12, at 95% confidence.
        epsilons = result.epsilon_grid()
        lower = result.profile_lower(epsilons, 0.95)
        bounded = [i for i in range(len(lower)) if lower[i] > 1e-12]
        rarest_loss = "none"
        if bounded:
            largest = bounded[-1]
            rarest_loss = (
                f"delta at epsilon {epsilons[largest]:.3g} is at least {lower[largest]:.1e} (95%)"
            )
        yield "rarest loss seen", rarest_loss
