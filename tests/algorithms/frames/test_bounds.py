"""Bounds that are found in private, and rows that count by weights."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from accountant import Budget, Filter, Ledger, ParameterError, Tight
from accountant.numerics.rounding import round_up
from accountant.plans.adjacency import Adjacency
from algorithms.base.column_bounds import CLIPPED, BoundsSearch
from algorithms.frames import (
    Category,
    Flag,
    Integer,
    Number,
    Schema,
    bounds,
    col,
    count,
    histogram,
    mean,
    median,
    persons,
    share,
    standard_deviation,
    sum_,
    variance,
)
from algorithms.frames.noise_tails import half_width
from tests.algorithms.frames.engines_of import MARKED, on

WAGES = {"wage": Number.unknown(), "kids": Integer(-(2**30), 2**30), "job": Category(["a", "b"])}
OPEN = Schema(WAGES, "id", 2, order="hash")


def earners(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    strange = [np.inf, -np.inf, np.nan, -0.0, 1e300, 5e-324]
    return pa.table({
        "id": rng.integers(0, n, n), "kids": rng.integers(0, 7, n),
        "wage": np.append(rng.lognormal(8, 0.8, n - len(strange)), strange),
        "job": rng.choice(["a", "b"], n).tolist(),
    })  # fmt: skip


EARNERS = earners()


def found(query, schema, table=EARNERS, seed=0):
    return query.release(Ledger(table, query.plan(schema), rng=seed), schema)


@pytest.mark.parametrize("engine", MARKED)
def test_bounds_are_powers_of_two_around_nearly_all_rows(engine):
    whole = found(bounds("kids", epsilon=1.0), OPEN, on(engine, EARNERS))
    assert whole.kind == Integer(0, 7)
    if engine in {"SQLFrame", "Ibis"}:
        return
    answer = found(bounds("wage", where=col("job") == "a", epsilon=1.0), OPEN, on(engine, EARNERS))
    assert answer.value == found(bounds("wage", where=col("job") == "a", epsilon=1.0), OPEN).value
    low, high = answer.value
    assert {np.log2(low) % 1, np.log2(high) % 1} == {0}
    wages = EARNERS.to_pandas()["wage"]
    assert ((low <= wages) & (wages < high)).mean() > 0.95
    assert high <= 2 * wages[wages < 1e6].max()


@pytest.mark.parametrize("cost", [{"epsilon": 0.3}, {"rho": 0.2}, {"epsilon": 2.0, "delta": 1e-6}])
def test_bounds_are_charged_and_in_the_plan(cost):
    query = bounds("wage", **cost)
    plan = query.plan(OPEN)
    (noise,) = plan.leaves()
    assert noise.sensitivity >= (2 if "rho" not in cost else 2**0.5)
    if "epsilon" in cost:
        assert Tight().epsilon(plan, cost.get("delta", 0.0)) <= cost["epsilon"]
    gate = Filter(EARNERS, Budget(9.0, 1e-5), rng=0)
    answer = query.release(gate, OPEN)
    assert gate.spent > 0
    closed = answer.bounded(OPEN)
    value = mean("wage", epsilon=1.0).release(gate, closed).value
    assert answer.kind.low < value < answer.kind.high
    assert answer.frame is not None
    assert '"low"' in answer.to_json()


def test_no_empty_bin_is_taken_more_often_than_is_said():
    query = bounds("kids", epsilon=1.0, confidence=0.8)
    table, schema = pa.table({"kids": [5] * 400}), Schema(WAGES)
    gate = Filter(table, Budget(1e9), rng=5)
    wrong = sum(query.release(gate, schema).value != (4, 7) for _ in range(60))
    assert wrong <= 27  # 12 are expected at most; more have a chance below 1e-5
    assert wrong >= 1


@pytest.mark.parametrize("engine", ["pandas", "polars", "Arrow", "DuckDB"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_no_person_moves_the_bins_by_more(engine, relation):
    rng = np.random.default_rng(len(engine))
    schema = Schema(WAGES, "id", 3, relation, order="hash")
    query = bounds("wage", epsilon=1.0)
    counted, sensitivity = query.counted(schema), query.plan(schema).part.sensitivity

    def own():
        wages = rng.choice([-1e300, -(2.0**127), 0.0, 2.0**-64, 3.0, 2.0**126, np.inf], 5)
        return on(engine, pa.table({"id": [7] * 5, "wage": wages}))

    sums = [counted.sums(own(), schema, "laplace").astype(float) for _ in range(2)]
    moved = sums[0] - sums[1] if relation == "replace-one" else sums[0]
    assert 0 < np.abs(moved).sum() <= sensitivity
    assert sums[0].sum() == 3  # no number is in no bin


def test_bounds_of_few_rows_are_those_of_the_fullest_bin_that_noise_shows():
    answer = found(bounds("wage", epsilon=0.1), Schema(WAGES), pa.table({"wage": [100.0]}))
    (noise,) = bounds("wage", epsilon=0.1).plan(Schema(WAGES)).leaves()
    assert answer.counts.max() <= half_width(noise, 1 - 0.1 / answer.counts.size)
    low, high = answer.value
    assert low < high


def test_columns_that_follow_from_others_get_closer_bounds():
    schema = Schema(WAGES).derive(double=2 * col("wage"))
    answer = found(bounds("wage", epsilon=1.0), schema)
    low, high = answer.value
    assert answer.bounded(schema).columns["double"].bounds == (2 * low, 2 * high)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: mean("wage", epsilon=1.0).plan(OPEN), "finds some in private"),
    (lambda: median("wage", epsilon=1.0).plan(OPEN), "finds some in private"),
    (lambda: count(where=col("wage") > 3, epsilon=1.0).plan(OPEN), "finds some in private"),
    (lambda: bounds("job", epsilon=1.0).plan(OPEN), "such as Number.unknown"),
    (lambda: bounds("wage").plan(OPEN), "epsilon, rho, scale must be one of them"),
    (lambda: bounds("wage", epsilon=1.0, confidence=1.0), "confidence must be"),
    (lambda: bounds("wage", epsilon=1.0).group_by("job").plan(OPEN), "those of all rows"),
    (lambda: bounds("two", epsilon=1.0).plan(OPEN.derive(two=2 * col("wage"))), "follow from"),
    (lambda: persons(epsilon=1.0).weighted_by("kids"), "takes no other weight"),
    (lambda: count(epsilon=1.0).weighted_by("kids").weighted_by("kids"), "no other weight"),
    (lambda: count(epsilon=1.0).weighted_by("job").plan(OPEN), "from 0 on"),
    (lambda: count(epsilon=1.0).weighted_by("kids").plan(OPEN), "from 0 on"),
    (lambda: count(epsilon=1.0).weighted_by(3), "the name of a column"),
    (lambda: sum_("x", epsilon=1.0).weighted_by("w").plan(
        Schema({"x": Number(0, 1e300), "w": Number(0, 1e300)})), "to 1e300"),
    (lambda: sum_("x", epsilon=1.0).weighted_by("w").plan(
        Schema({"x": Number(0, 1e-200), "w": Number(0, 1e-200)})), "from 1e-290"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


@pytest.mark.parametrize("largest", [1e-290, 1e-170, 1e200, 1e300])
def test_weights_may_be_small_or_large(largest):
    schema = Schema({"x": Number(0, 1), "w": Number(0, largest)})
    frame = pd.DataFrame({"x": [1.0] * 9, "w": [largest] * 9})
    for query in (count(epsilon=1.0), sum_("x", epsilon=1.0)):
        weighted = query.weighted_by("w")
        assert weighted.plan(schema) == weighted.plan(schema.with_kind("w", Number(0, 1)))
        unit = weighted.statistic.basis(schema, "laplace").unit
        assert weighted.sums(frame, schema, "laplace") * unit == pytest.approx(9 * largest)


def test_listed_bins_need_no_bounds():
    query = histogram("wage", [0, 1000, 10_000], epsilon=1.0)
    assert query.sums(EARNERS, Schema(WAGES), "laplace").sum() > 2000


COLUMNS = {"x": Number(0, 100), "k": Integer(0, 8), "w": Number(0, 4), "own": Flag(),
           "g": Category(["a", "b"]), "n": Integer(0, 3)}  # fmt: skip


def survey(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "x": rng.normal(30, 20, n), "k": rng.integers(0, 12, n), "w": rng.uniform(-1, 5, n),
        "own": rng.random(n) < 0.3, "g": rng.choice(["a", "b"], n), "n": rng.integers(0, 4, n),
    })  # fmt: skip


def weighted_truths(frame):
    weight, x, k = frame["w"].clip(0, 4), frame["x"].clip(0, 100), frame["k"].clip(0, 8)
    centre = np.average(x, weights=weight)
    spread = np.average((x - centre) ** 2, weights=weight)
    owners = np.average(frame["own"], weights=weight)
    return [
        weight.sum(),
        (weight * k).sum(),
        (weight * x).sum(),
        centre,
        spread,
        spread**0.5,
        owners,
    ]


def weighted_questions(**cost):
    questions = [
        count(**cost), sum_("k", **cost), sum_("x", **cost), mean("x", **cost),
        variance("x", **cost), standard_deviation("x", **cost), share("own", **cost),
    ]  # fmt: skip
    return [query.weighted_by("w") for query in questions]


SURVEY = survey()


@pytest.mark.parametrize("cost", [{"epsilon": 1e5}, {"rho": 1e8}])
def test_weighted_statistics_are_those_of_numpy(cost):
    gate = Filter(SURVEY, Budget(1e12, 1e-6), rng=0)
    for query, truth in zip(weighted_questions(**cost), weighted_truths(SURVEY), strict=True):
        assert query.release(gate, Schema(COLUMNS)).value == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("engine", MARKED)
def test_weighted_sums_have_the_same_bits_on_every_engine(engine):
    table, schema = pa.Table.from_pandas(SURVEY), Schema(COLUMNS)
    for query in weighted_questions(epsilon=1.0):
        sums = np.atleast_1d(query.sums(on(engine, table), schema, "laplace")).tolist()
        assert sums == np.atleast_1d(query.sums(SURVEY, schema, "laplace")).tolist()


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_no_person_moves_weighted_sums_by_more(kind, relation):
    rng, most = np.random.default_rng(3), 0.0
    limits = [{"rows_per_person": 3}, {"groups_per_person": 2, "rows_per_person_and_group": 2}]
    for weight in ("w", "n"):
        for question in (count, sum_, mean, variance):
            column = [] if question is count else ["x"]
            for by in ((), "g"):
                schema = Schema(COLUMNS, "id", relation=relation, order="hash",
                                **limits[rng.integers(2)])  # fmt: skip
                query = question(*column, by=by, epsilon=1.0).weighted_by(weight)
                declared = query.asked_of(schema).moved(schema, kind, 2 if by else 1)
                frames = [pd.DataFrame({
                    "id": [7] * 6, "x": rng.choice([-1e9, 0.0, 33.3, 99.9, 100.0], 6),
                    "w": rng.choice([-1.0, 0.0, 1e-9, 3.9, 4.0, 9.0], 6),
                    "n": rng.integers(0, 9, 6), "g": rng.choice(["a", "b"], 6),
                }) for _ in range(2)]  # fmt: skip
                sums = [np.array(query.sums(f, schema, kind), float) for f in frames]
                moved = sums[0] - sums[1] if relation == "replace-one" else sums[0]
                norm = np.abs(moved).sum() if kind == "laplace" else np.linalg.norm(moved)
                limit = declared.l1 if kind == "laplace" else round_up(declared.l2)
                assert norm <= limit, (str(query), relation)
                most = max(most, norm / limit)
    assert most > 0.4


def test_intervals_of_weighted_means_cover():
    truth = weighted_truths(SURVEY)[3]
    query, schema = mean("x", epsilon=0.5).weighted_by("w"), Schema(COLUMNS)
    gate = Filter(SURVEY, Budget(1e9), rng=1)
    ends = np.array([query.release(gate, schema).interval() for _ in range(60)])
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum()
    assert covered >= 46  # fewer of 95 % have a chance below 1e-6


def test_weights_in_words():
    words = count(by="g", epsilon=1.0).weighted_by("w").explain(Schema(COLUMNS))
    assert "count weighted by w by g" in words
    assert "noise of scale 4 on the sum of w" in words


def test_bounds_of_a_frame_are_within_one_octave_of_those_of_an_array():
    # Noise is taken for rows with a chance of 1e-9 a column in the frame; the array has none.
    rng, scale, declared = np.random.default_rng(3), 3.0, 2.0**20
    schema = Schema({"x": Number(-declared, declared)})
    query = bounds("x", noise="gaussian", scale=scale, confidence=1 - 1e-9)
    search = BoundsSearch((declared,), Adjacency.ADD_REMOVE, (1.0,))
    for seed in range(25):
        numbers = 2.0 ** rng.uniform(-10, 10) * rng.standard_t(rng.integers(3, 30), 20_000)
        of_frame = found(query, schema, pl.DataFrame({"x": numbers}), seed).value
        counts = search.counts_of_block((numbers[:, None],))
        of_array = search.bounds_of(counts, scale, len(numbers)).limits[0]
        for bound in (max(map(abs, of_frame)), of_array):
            assert 1 / 2 <= bound / of_array <= 2
            assert (np.abs(numbers) > bound).mean() <= CLIPPED
