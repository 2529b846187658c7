"""Bounds found by a noisy histogram: its sensitivity, what it finds, and fits that use it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

from accountant import Chunks, Ledger, ParameterError, Tight
from accountant.plans.adjacency import Adjacency
from algorithms import (
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
)
from algorithms.base.column_bounds import RUNS, BoundsSearch, exponents_of, noise_quantiles
from tests.algorithms.scikit_learn_checks import passes_scikit_learn_checks
from tests.mutants.edits import edit

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
RNG = np.random.default_rng(0)
REPLACED, REMOVED = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
# columns of which the last uses .003 of its bound
SCALES = np.logspace(0, -2.5, 6)
X = RNG.uniform(-1, 1, (6000, 6)) * SCALES
Y = (X / SCALES) @ RNG.normal(size=6) / 8 + RNG.normal(size=6000) / 20
ESTIMATORS = {
    "linear": (PrivateLinearRegression, Y), "lasso": (PrivateLasso, Y),
    "logistic": (PrivateLogisticRegression, Y > 0), "logistic lasso": (PrivateLogisticLasso, Y > 0),
}  # fmt: skip


def search_of(*declared, relation=REPLACED, headroom=1.0, has_target=False):
    return BoundsSearch(declared, relation, (headroom,) * len(declared), has_target)


def sensitivity_violation(search):
    """By how much one record moves the counts: never more than is declared, at times as much."""
    columns, greatest = len(search.declared), 0.0
    for _ in range(300):
        rows = 2.0 ** RNG.uniform(-1050, 1010, (2, columns)) * RNG.choice([-1, 0, 1], (2, columns))
        counts = [search.counts_of_block((row[None, :],)) for row in rows]
        if search.relation is REMOVED:
            counts[1] = np.zeros_like(counts[0])
        greatest = max(greatest, float(np.linalg.norm(counts[0] - counts[1])))
    far = [search.counts_of_block((np.full((1, columns), size),)) for size in (0.9, 1e-3)]
    far[1] *= search.relation is REPLACED
    greatest = max(greatest, float(np.linalg.norm(far[0] - far[1])))
    if greatest > search.sensitivity:
        return f"a record moves the counts by {greatest}, declared is {search.sensitivity}"
    return "" if greatest > 0.99 * search.sensitivity else f"{greatest} of {search.sensitivity}"


@pytest.mark.parametrize("relation", [REPLACED, REMOVED])
@pytest.mark.parametrize("columns", [1, 2, 7])
def test_a_record_moves_the_counts_by_what_is_declared(columns, relation):
    assert sensitivity_violation(search_of(*columns * [1.0], relation=relation)) == ""
    assert search_of(*columns * [1.0], relation=relation).sensitivity >= math.sqrt(
        columns * (2 if relation is REPLACED else 1)
    )


WRONG_COUNTS = {
    "columns are one": ("sensitivity", "* len(self.declared)", "* 1"),
    "one place of two": ("sensitivity", "2 if replaced else 1", "1"),
    "counted twice": ("counts_of_block", "totals += ", "totals += 2 * "),
    "octaves below too": (
        "counts_of_block", "minlength=totals.size)",
        "minlength=totals.size) + np.roll(np.bincount(places.ravel(), minlength=totals.size), 1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_COUNTS)
def test_wrong_counts_are_noticed(monkeypatch, name):
    edit(monkeypatch, BoundsSearch, *WRONG_COUNTS[name])
    assert sensitivity_violation(search_of(1.0, 1.0)) != ""


@pytest.mark.parametrize("size", [1.0, 0.75, 3.0, 1e300, 5e-324, 1e-300, 2.0**-1022, 1 + 2e-16])
def test_octaves_are_those_of_exact_arithmetic(size):
    exponent = int(exponents_of(np.array([size]))[0])
    assert Fraction(2) ** (exponent - 1) < Fraction(size) <= Fraction(2) ** exponent


def test_each_magnitude_is_counted_once():
    search = search_of(8.0, 3.0)
    values = np.array([[8.0, 9.0], [-4.0, 3.0], [4.1, -2.0], [0.0, 1e-300], [1e300, 1.5]])
    counts = search.counts_of_block((values,)).reshape(2, -1)
    # beyond the bound, and the octaves (4, 8], (2, 4], ... or (2, 4] to 3, (1, 2], ...
    assert counts[0, :3].tolist() == [1, 2, 1]
    assert counts[1, :3].tolist() == [1, 1, 2]
    assert counts.sum(axis=1).tolist() == [4, 4]  # not 0, nor what is far too small


def test_sparse_rows_targets_and_chunks_are_counted_alike():
    rows, targets = X * (RNG.uniform(size=X.shape) < 0.3), Y
    search = search_of(*6 * [1.0], 2.0, has_target=True)
    dense = search.counts_of_block((rows, targets))
    assert np.array_equal(dense, search.counts_of_block((sparse.csr_array(rows), targets)))
    columns = search_of(*6 * [1.0], 2.0).counts_of_block((np.column_stack([rows, targets]),))
    assert np.array_equal(dense, columns)


def test_an_entry_stored_in_parts_is_one_entry():
    whole = sparse.csr_array([[0.9, 0.0], [0.4, 0.25]])
    parts = sparse.csr_array(
        ([0.4, 0.5, 0.25, 0.4], [0, 0, 1, 0], [0, 2, 4]), shape=(2, 2), dtype=np.float64
    )
    search = search_of(1.0, 1.0)
    counts = [search.counts_of_block((rows,)) for rows in (whole, parts)]
    assert np.array_equal(*counts)
    bounds = search.bounds_of(counts[0], 0.01, 2)._replace(limits=np.array([0.5, 0.2]))
    for shortened in (bounds.scaled, bounds.clipped):
        assert np.array_equal(shortened(parts).toarray(), shortened(whole.toarray()))


def bounds_without_noise(values, declared, noise=1e-3, **settings):
    search = search_of(*declared, **settings)
    counts = search.counts_of_block((values,))
    return search.bounds_of(counts, noise, len(values))


def test_scales_follow_the_data_and_not_their_outliers():
    values = np.zeros((5000, 5))
    values[:, 1], values[:, 2] = 3.0, RNG.uniform(-20, 20, 5000)
    values[:, 3], values[:3, 3] = 1e-40, 1e7
    values[:, 4] = 1e9
    found = bounds_without_noise(values, 5 * [1e8], noise=20.0)
    # all zeros and what is beyond the bound keep the bound; the constant and the others do not
    assert found.scales.tolist() == [2.0**27, 4.0, 32.0, 2.0**27, 2.0**27]
    assert found.limits.tolist() == [1e8, 4.0, 32.0, 1e8, 1e8]
    assert found.clipped_shares.round(3).tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("declared", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_a_bound_may_be_declared_anywhere(declared):
    values = RNG.uniform(0, 1, (4000, 2)) * declared * [1.0, 2.0**-40]
    found = bounds_without_noise(values, 2 * [declared], noise=10.0)
    top = 2.0 ** exponents_of(np.array([declared]))[0]
    assert found.scales[0] == top
    assert found.scales[1] <= top * 2.0**-39 or declared == 1e-300  # subnormal numbers there
    assert np.isfinite(found.units(1)).all()
    assert np.isfinite(found.scaled(values)).all()


def test_headroom_clips_later_and_no_later_than_the_bound():
    values = RNG.uniform(-1, 1, (3000, 2)) * [1.0, 0.01]
    found = bounds_without_noise(values, [1.0, 1.0], headroom=16.0)
    assert found.scales.tolist() == [1.0, 2.0**-6]
    assert found.limits.tolist() == [1.0, 0.25]


def test_noise_alone_finds_nothing_in_most_fits():
    """Of 400 draws with 3 columns a fortieth is allowed: 10, here with six deviations of room."""
    search = search_of(*3 * [1.0])
    noise = np.random.default_rng(1).normal(size=(400, 3 * (search.octaves + 1)))
    alarms = sum((search.bounds_of(draw, 1.0, 100).scales != 1.0).any() for draw in noise)
    assert alarms <= 10 + 6 * math.sqrt(10)


@pytest.mark.parametrize("columns", [1, 2, 11, 100, 1000])
def test_the_stated_chance_of_a_false_alarm_holds(columns):
    octaves = 2000
    quantiles = noise_quantiles(columns, octaves)
    runs = np.array([sum(run <= end for run in RUNS) for end in range(1, octaves + 1)])
    assert columns * float(runs @ norm.sf(quantiles)) < 1 / 40


def test_clipped_shares_are_those_of_the_records_within_their_errors():
    values = np.exp(RNG.normal(size=(20_000, 3)) * 2)
    search = search_of(*3 * [1e6])
    mechanism = search.mechanism(40.0)
    found = search.release(Ledger((values,), mechanism, rng=1), mechanism)
    shares = (values > found.limits).mean(axis=0)
    assert (np.abs(shares - found.clipped_shares) < 6 * found.share_errors).all()
    assert (shares > 0).any()
    assert (found.share_errors < 0.05).all()


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_plan_is_what_a_fit_spends_and_no_more_than_asked(name, relation):
    kind, target = ESTIMATORS[name]
    model = kind(**CLAIM, bounds="private", relation=relation, random_state=0)
    plan = model.plan(X.shape)
    assert model.fit(X, target).plan_ == plan
    assert model.ledger_.next is None
    assert 0.99 < Tight().epsilon(plan, CLAIM["delta"]) <= 1.0
    assert len(model.transcript_) == sum(1 for _ in plan.leaves())


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_the_histogram_has_its_declared_share_of_the_squared_budget(share):
    model = PrivateLinearRegression(**CLAIM, bounds="private", bounds_share=share)
    losses = [part.loss.mu**2 * count for part, count in mus(model.plan(X.shape))]
    assert losses[0] / sum(losses) == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize(("epsilon", "delta"), [(300.0, 0.3), (0.1, 0.9)])
def test_any_share_leaves_a_budget_for_the_fit(epsilon, delta, share):
    budget = {"epsilon": epsilon, "delta": delta}
    plan = PrivateLinearRegression(**budget, bounds="private", bounds_share=share).plan((2000, 3))
    assert 0.9 * epsilon < Tight().epsilon(plan, delta) <= epsilon


def mus(plan):
    """The Gaussian releases of a plan, and how often each comes."""
    parts = [plan.parts[0], *plan.parts[1].parts]
    return [(getattr(part, "part", part), getattr(part, "count", 1)) for part in parts]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_loose_bounds_cost_little(name):
    kind, target = ESTIMATORS[name]
    train, test = slice(4500), slice(4500, None)
    scores = [
        kind(**CLAIM, random_state=0, **settings)
        .fit(rows[train], target[train])
        .score(rows[test], target[test])
        for rows, settings in (
            (X, {"bounds": "private"}), (X / SCALES, {}), (X * 1e6, {"bounds": "private",
                                                                     "x_bound": 1e9}),
        )
    ]  # fmt: skip
    assert min(scores) > max(scores) - 0.05


def test_targets_have_a_scale_too_and_results_are_in_their_units():
    made = PrivateLinearRegression(
        **CLAIM, bounds="private", x_bound=1e6, y_bound=1e9, intervals=True, random_state=0
    )
    model = made.fit(X * 1000, 5e4 * Y + 2e4)
    exact = np.linalg.lstsq(
        np.column_stack([X * 1000, np.ones(len(X))]), 5e4 * Y + 2e4, rcond=None
    )[0]
    low, high = model.interval(0.999).T
    assert (low < exact).all()
    assert (exact < high).all()
    coefficients = np.append(model.coef_, model.intercept_)
    assert ((low < coefficients) & (coefficients < high)).all()
    assert model.column_bounds_.scales[-1] <= 2.0**18
    ran = model.run(Ledger((X * 1000, 5e4 * Y + 2e4), model.plan(X.shape), rng=0))
    assert ran.shape == coefficients.shape


def test_predictions_are_of_features_clipped_at_their_limits():
    model = PrivateLasso(**CLAIM, bounds="private", x_bound=1e9, random_state=0).fit(X, Y)
    far = np.full((1, 6), 1e12)
    limits = model.column_bounds_.limits[:6]
    assert model.predict(far) == pytest.approx(limits @ model.coef_ + model.intercept_)
    assert model.predict(sparse.csr_array(far)) == pytest.approx(model.predict(far))


def test_chunks_and_arrays_give_the_same_fit():
    made = PrivateLinearRegression(**CLAIM, bounds="private", rounds=5, random_state=0)
    pieces = Chunks(lambda: ((X[at : at + 700], Y[at : at + 700]) for at in range(0, 6000, 700)),
                    X.shape)  # fmt: skip
    assert np.array_equal(made.fit(pieces).coef_, made.fit(X, Y).coef_)


def test_a_later_fit_with_public_bounds_forgets_the_scales():
    model = PrivateLinearRegression(**CLAIM, bounds="private", rounds=5, random_state=0)
    other = PrivateLinearRegression(**CLAIM, rounds=5, random_state=0).fit(X, Y)
    assert model.fit(X, Y).column_bounds_ is not None
    again = model.set_params(bounds="public").fit(X, Y)
    assert again.column_bounds_ is None
    assert np.array_equal(again.predict(X), other.predict(X))
    assert "counts of magnitudes" not in again.summary()


def test_without_privacy_the_declared_bounds_hold():
    made = PrivateLinearRegression(epsilon=math.inf, delta=1e-6, non_private=True, bounds="private")
    with pytest.warns(UserWarning, match="NOT private"):
        assert made.fit(X, Y).column_bounds_ is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bounds": "found"}, "bounds must be"), ({"bounds_share": 0.0}, "bounds_share must be"),
        ({"bounds_share": 1.0}, "bounds_share must be"), ({"x_bound": math.inf}, "x_bound must be"),
        ({"y_bound": math.nan}, "y_bound must be"), ({"delta": 0.0}, "delta must be above 0"),
        ({"x_bound": 1e301}, "x_bound must be"), ({"x_bound": True}, "x_bound must be"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_before_anything_is_spent(settings, words):
    model = PrivateLasso(**{**CLAIM, "bounds": "private", **settings})
    with pytest.raises(ParameterError, match=words):
        model.plan(X.shape)
    with pytest.raises(ParameterError, match=words):
        model.fit(X, Y)


def family_of(kind, seed, records=20_000, features=10):
    """Columns that use 1 to .003 of their bound, the first at most .02 of it where tails are heavy.

    All matter alike; the noise of the targets leaves R2 at .92.
    """
    rng = np.random.default_rng(seed)
    columns = {
        "uniform": rng.uniform(-1, 1, (records, features)),
        "normal": np.clip(rng.normal(size=(records, features)) / 3, -1, 1),
        "log-normal": np.exp(rng.normal(size=(records, features))) / 50,
        "Student, 2.5": np.clip(rng.standard_t(2.5, (records, features)) / 60, -1, 1),
    }[kind]
    signal = columns @ rng.normal(size=features)
    targets = (signal - signal.mean()) / signal.std() + 0.3 * rng.normal(size=records)
    return columns * np.logspace(0, -2.5, features), targets / np.abs(targets).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "normal", "log-normal", "Student, 2.5"])
def test_loose_bounds_beside_those_of_the_data(kind):
    """R2 of five seeds: declared bounds, private ones, and the greatest magnitudes themselves."""
    train, test = slice(15_000), slice(15_000, None)
    for epsilon in (0.1, 1.0, 4.0):
        rows = []
        for seed in range(5):
            x, y = family_of(kind, seed)
            made = PrivateLinearRegression(epsilon=epsilon, delta=1e-6, random_state=seed)
            private = PrivateLinearRegression(**made.get_params() | {"bounds": "private"})
            greatest = np.abs(x).max(axis=0)
            fits = (made, x), (private, x), (made, x / greatest)
            rows.append(
                [
                    model.fit(columns[train], y[train]).score(columns[test], y[test])
                    for model, columns in fits
                ]
            )
        declared, found, known = np.mean(rows, axis=0)
        print(f"{kind:12} {epsilon:4g} {declared:8.3f} {found:8.3f} {known:8.3f}")
        assert found > known - 0.01
        assert found > 0.9 or epsilon < 1


@passes_scikit_learn_checks(
    PrivateLinearRegression(epsilon=50.0, delta=1e-6, rounds=5, bounds="private", random_state=0),
    PrivateLinearRegression(**CLAIM, method="statistics", bounds="private", random_state=0),
    PrivateLasso(**CLAIM, rounds=5, bounds="private", random_state=0),
    PrivateLogisticRegression(
        epsilon=50.0, delta=1e-6, classes=[0, 1], rounds=3, bounds="private", random_state=0
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
