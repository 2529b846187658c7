"""Shares of targets, and a constant alone: how far a record moves them, and what they find."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse

from accountant import Budget, BudgetExceeded, Chunks, ParameterError
from accountant.accountants.tight import Tight
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Repeat
from algorithms import PrivateGeneralizedLinearModel, PrivateLinearRegression
from algorithms.base.row_blocks import MeanOfBlocks
from algorithms.linear_models.regression_plan import constant_plan
from algorithms.linear_models.target_shares import CELLS, BlockMean, BlockTargets, TargetRange
from audits import replay

GREATEST = np.finfo(float).max  # what a fit makes of an infinite target
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
RELATIONS = ["replace-one", "add-remove"]
RECORDS, FEATURES = 1000, 400  # a shape of which "auto" releases a constant alone
RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (RECORDS, FEATURES))
OFFSET = RNG.uniform(0.69, 0.71, RECORDS)


def is_of_constant(plan):
    """Whether a plan has no rounds of gradients."""
    return not any(isinstance(part, Repeat) for part in plan.parts)


def hostile_targets(y_bound, rng):
    """Targets of all sizes, at edges of cells, and beyond their bound."""
    edges = (np.arange(CELLS + 1) / (CELLS / 2) - 1) * y_bound
    odd = [0.0, 5e-324, -5e-324, GREATEST, -GREATEST, 1e50, *edges, *np.nextafter(edges, 9e99)]
    return np.concatenate([odd, rng.uniform(-2, 2, 900) * y_bound])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("y_bound", [1e-50, 0.5, 7.3, 1e50])
def test_no_target_moves_shares_or_mean_by_more_than_declared(y_bound, relation):
    rng, replaced = np.random.default_rng(5), relation == "replace-one"
    targets = hostile_targets(y_bound, rng)
    shares, mean = constant_plan((1.0, 1e-6), RECORDS, Adjacency(relation)).parts
    made = PrivateLinearRegression(**CLAIM, relation=relation, method="descent")
    assert made.plan((100_000, 3)).parts[0].sensitivity * 100_000 == pytest.approx(
        shares.sensitivity * RECORDS
    )
    ranges = [TargetRange(0.0, y_bound), TargetRange(0.3 * y_bound, y_bound / 50)]
    works = [BlockTargets(y_bound), *(BlockMean(y_bound, found) for found in ranges)]
    for work, part in zip(works, [shares, mean, mean], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning would tell that a large target is there
            moved = np.array([work((X[:1], targets[[at]])) for at in range(targets.size)])
        assert np.isfinite(moved).all()
        pairs = rng.integers(targets.size, size=(2, 20_000))
        apart = moved[pairs[0]] - moved[pairs[1]] if replaced else moved
        farthest = np.linalg.norm(apart, axis=1).max() / RECORDS
        assert 0.999 * part.sensitivity <= farthest <= part.sensitivity


def test_means_over_blocks_move_by_no_more_than_declared():
    rng, records = np.random.default_rng(6), 3000  # in five blocks of rows
    wide, targets = np.zeros((records, FEATURES)), rng.uniform(-1, 1, records)
    parts = constant_plan((1.0, 1e-6), records, Adjacency.REPLACE_ONE).parts
    works = [BlockTargets(1.0), BlockMean(1.0, TargetRange(0.1, 0.5))]
    for work, part in zip(works, parts, strict=True):
        query, farthest = MeanOfBlocks(work, records), 0.0
        for at in rng.integers(records, size=40):
            one, other = targets.copy(), targets.copy()
            one[at], other[at] = rng.choice(hostile_targets(1.0, rng), 2)
            moved = query((wide, one)) - query((wide, other))
            farthest = max(farthest, float(np.linalg.norm(moved)))
        # 1e-9 is for the round-off of the sums
        assert 0.999 * part.sensitivity <= farthest <= (1 + 1e-9) * part.sensitivity


@pytest.mark.parametrize("y_bound", [1.0, 2.0**-100, 2.0**100])
@pytest.mark.parametrize(
    ("targets", "longest"),
    [
        (np.linspace(0.2, 0.4, RECORDS), 0.2),
        (np.linspace(-1, 1, RECORDS), 1.0),
        (-np.minimum(-0.1 * np.log(1 - np.arange(RECORDS) / RECORDS), 1), 0.25),
        (np.full(RECORDS, 0.7), 1.5 / CELLS),
        (np.full(RECORDS, -1.0), 1.5 / CELLS),
        (np.append(np.full(950, 0.01), np.ones(50)), 1.5 / CELLS),
    ],
    ids=["uniform", "everywhere", "skewed", "one cell", "least", "outliers"],
)
def test_the_range_holds_most_targets_and_is_short(targets, longest, y_bound):
    shares = MeanOfBlocks(BlockTargets(y_bound), RECORDS)((X, targets * y_bound))
    noise = 0.002
    # The noise of the longest run deviates by 0.016: a share of 0.9 is off by 0.1 in less than
    # 1e-9 of all seeds.
    released = shares + noise * np.random.default_rng(1).standard_normal(CELLS)
    found = TargetRange.of(released, noise, y_bound)
    assert np.mean(np.abs(targets * y_bound - found.centre) <= found.reach) >= 0.8
    assert found.reach <= longest * y_bound
    # Targets in another unit have the same range, in that unit.
    assert found == tuple(y_bound * np.array(TargetRange.of(released, noise, 1.0)))
    assert found.about_zero() == (0.0, abs(found.centre) + found.reach)


def test_where_noise_hides_the_range_it_is_the_whole_one():
    flat, alone = np.full(CELLS, 1 / CELLS), np.eye(CELLS)[40]
    for released, noise in [(flat, 0.1), (flat, 9.0), (0 * flat, 0.01), (alone, 0.2)]:
        assert TargetRange.of(released, noise, 3.0) == (0.0, 3.0)
    assert TargetRange.of(alone, 0.1, 3.0).reach < 0.1
    for seed in range(200):  # whatever is released, the range is one
        noise = 10.0 ** (seed % 7 - 3)
        found = TargetRange.of(noise * np.random.default_rng(seed).normal(size=CELLS), noise, 3.0)
        assert 0 < found.reach <= 3.0
        assert abs(found.centre) <= 3.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_a_constant_alone_keeps_to_the_plan_and_the_budget(epsilon, relation):
    records = max(4, int(30 / epsilon))
    made = PrivateLinearRegression(epsilon=epsilon, delta=1e-6, relation=relation, random_state=0)
    plan = made.plan((records, FEATURES))
    assert is_of_constant(plan)
    assert Tight().epsilon(plan, 1e-6) == pytest.approx(epsilon, rel=1e-3)
    assert Tight().epsilon(plan, 1e-6) <= epsilon
    x, y = np.resize(X, (records, FEATURES)), np.resize(OFFSET, records)
    made.fit(x, y)
    assert made.plan_ == plan
    assert [entry.mechanism for entry in made.transcript_] == list(plan.leaves())
    assert not made.coef_.any()
    assert abs(made.intercept_) <= 1
    parts = Chunks(lambda: iter([(x[:3], y[:3]), (x[3:], y[3:])]), shape=x.shape)
    for data in [(sparse.csr_array(x), y), (parts,)]:
        same = PrivateLinearRegression(**made.get_params()).fit(*data)
        assert same.intercept_ == made.intercept_


def test_replays_of_shares_and_constants_leak_nothing():
    models = [
        PrivateLinearRegression(**CLAIM, y_bound=0.5),
        PrivateLinearRegression(**CLAIM, y_bound=0.5, method="descent", rounds=2, weight_bound=3),
        PrivateGeneralizedLinearModel(**CLAIM, loss="huber", y_bound=0.5, rounds=2),
        PrivateGeneralizedLinearModel(**CLAIM, loss="quantile", y_bound=0.5, rounds=2),
    ]
    for model, features in zip(models, [FEATURES, 2, 2, 2], strict=True):
        x = X[:, :features]
        assert len(model.plan(x.shape).parts) == (2 if features == FEATURES else 4)
        for odd in (GREATEST, -np.inf, np.nan, 0.5):
            other_x, other_y = x.copy(), OFFSET.copy()
            other_x[7], other_y[7] = odd, odd
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                found = replay(model, (x, OFFSET), (other_x, other_y), rng=1)
            assert (found.leak_free, found.on_plan, found.deterministic) == (True, True, True)


@pytest.mark.parametrize("unit", [2.0**-150, 2.0**150])
def test_targets_in_another_unit_give_the_fit_in_that_unit(unit):
    made = [PrivateLinearRegression(**CLAIM, random_state=2)] * 2
    made += [PrivateGeneralizedLinearModel(**CLAIM, loss="huber", random_state=2)]
    for model, features in zip(made, [FEATURES, 2, 2], strict=True):
        x, y = X[:, :features], OFFSET + 0.1 * X[:, 0]
        one, other = (
            type(model)(**model.get_params() | {"y_bound": bound}).fit(x, bound * y)
            for bound in (1.0, unit)
        )
        assert other.coef_ == pytest.approx(unit * one.coef_, rel=1e-9, abs=0)
        assert other.intercept_ == pytest.approx(unit * one.intercept_, rel=1e-9, abs=0)


def test_a_refused_fit_spends_nothing():
    budget = Budget(epsilon=1.0, delta=1e-6)
    for wrong in (math.nan, math.inf, 0.0, -1.0, True):
        made = PrivateLinearRegression(**CLAIM, y_bound=wrong)
        with pytest.raises(ParameterError, match="y_bound"):
            made.fit(X, OFFSET, ledger=budget)
        assert not hasattr(made, "ledger_")
    made = PrivateLinearRegression(epsilon=1.01, delta=1e-6, random_state=np.random.default_rng(3))
    with pytest.raises(BudgetExceeded):
        made.fit(X, OFFSET, ledger=budget)
    assert not hasattr(made, "ledger_")
    made.set_params(epsilon=1.0).fit(X, OFFSET, ledger=budget)  # all of it is still there
    assert made.random_state.random() == np.random.default_rng(3).random()


def test_a_constant_of_offset_targets_is_better_than_a_noisy_mean():
    # The noise of a mean over all that the bound allows deviates by about 2 / (n mu), mu = 0.24.
    of_mean = 2 / (RECORDS * 0.24)
    errors = [
        PrivateLinearRegression(**CLAIM, random_state=seed).fit(X, OFFSET).intercept_
        - OFFSET.mean()
        for seed in range(20)
    ]
    # The range is a twentieth of the bound.  Were the errors normal with a tenth of the deviation
    # of the noisy mean, their sum of squares were more than 6.25 times what is expected, by the
    # law of chi squared, in less than 1e-17 of all seeds.
    assert math.sqrt(np.mean(np.square(errors))) < of_mean / 4
