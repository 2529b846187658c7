"""Intervals cover what they say, and noise is as large as an answer says.

Of 2,000 answers an interval of 95 % misses more than 150 or fewer than 50 with chance 1e-6.
"""

from pathlib import Path

import numpy as np
import pytest

from algorithms.frames import Integer, Number, Schema, count, mean, sum_, variance
from algorithms.frames.answer import estimate, interval
from tests.algorithms.frames.frames_of import frame_of

RUNS = 2000
COLUMNS = {"age": Number(0, 100), "kids": Integer(0, 8), "wage": Number(-10, 1e5)}
PRIVATE = Schema(COLUMNS)
PUBLIC = Schema({"age": Number(0, 100, missing=50)}, relation="replace-one")  # number of rows
QUERIES = [
    count(epsilon=0.02),
    sum_("kids", rho=0.01),
    sum_("wage", epsilon=1.0),
    mean("age", epsilon=0.3),
    mean("wage", epsilon=1.0),
    mean("age", epsilon=0.5, delta=1e-6, noise="gaussian"),
    variance("age", epsilon=1.0),
    variance("age", rho=0.1),
    mean("age", epsilon=0.8),
    variance("age", epsilon=0.8),
    variance("age", rho=0.2),
]
CASES = [(query, PUBLIC if i > 7 else PRIVATE) for i, query in enumerate(QUERIES)]


def people(n=1500, seed=2):
    rng = np.random.default_rng(seed)
    return {
        "age": np.clip(rng.normal(38, 13, n), 0, 100), "kids": rng.integers(0, 5, n),
        "wage": np.minimum(rng.lognormal(9, 0.8, n), 1e5),
    }  # fmt: skip


def misses_and_errors(query, declared, runs, seed=11):
    """How many intervals of 95 % miss, and the errors as shares of the declared deviation."""
    columns = people()
    statistic, mechanism = query.asked_of(declared), query.mechanism(declared)
    public = len(columns["age"]) if declared is PUBLIC else 0
    kind = "laplace" if "Laplace" in type(mechanism).__name__ else "gaussian"
    sums = query.sums(frame_of("pyarrow", columns), declared, kind)
    drawn = mechanism.release(sums, np.random.default_rng(seed), size=runs)
    drawn = drawn.reshape(runs, -1).astype(float)
    values = columns.get(statistic.column)
    truth = {"count": len(columns["age"]), "sum": values is not None and values.sum(),
             "mean": np.mean(values if values is not None else 0),
             "variance": np.var(values if values is not None else 0)}[statistic.name]  # fmt: skip
    ends = interval(statistic, drawn, declared, mechanism, 0.95, public)
    slack = 1e-6 * abs(truth)  # numbers are counted in steps
    missed = (ends[:, 0] > truth + slack) | (ends[:, 1] < truth - slack)
    found = estimate(statistic, drawn, declared, mechanism, public)
    return int(missed.sum()), (found.value - truth) / found.deviation


@pytest.mark.parametrize(("query", "declared"), CASES, ids=str)
def test_intervals_cover(query, declared):
    missed, errors = misses_and_errors(query, declared, RUNS)
    assert 50 <= missed <= 150
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("query", "declared"), CASES, ids=str)
def test_intervals_cover_what_they_say(query, declared):
    missed, errors = misses_and_errors(query, declared, 50_000)
    covered = 1 - missed / 50_000
    row = f"| {query} | {query.guarantee}, {declared.relation} | {100 * covered:.1f} % |"
    print(row, f"error over deviation {np.sqrt(np.mean(errors**2)):.3f}")
    assert 0.93 < covered < 0.97
    page = Path(__file__).parents[3] / "docs" / "frames.md"
    assert row in page.read_text(encoding="utf-8")


def test_levels_and_ends():
    declared = Schema(COLUMNS)
    query = mean("age", epsilon=1.0)
    mechanism = query.mechanism(declared)
    sums = np.array([[5e8, 7e8], [2e13, 3e13], [-1e9, 5e8]])
    wide, narrow = (interval(query.statistic, sums, declared, mechanism, p) for p in (0.99, 0.5))
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (narrow[:, 1] <= wide[:, 1]).all()
    assert wide[2].tolist() == [0.0, 100.0]  # no rows: any mean may be
