"""Least squares on noisy labels: the columns found, the weights, and what noise explains."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from accountant import Chunks
from algorithms import LabelIHT, LabelLasso
from algorithms.base.hard_thresholding import default_step
from algorithms.sparse_regression.label_stages import (
    LabelStages,
    ResidualSizes,
    ScaledResiduals,
    stage_ends,
)
from algorithms.sparse_regression.links import IDENTITY, LINEAR_PLUS_COSINE
from algorithms.sparse_regression.support_pursuit import PublicRows
from mechanisms import Gaussian


def model(users, features, sparsity, seed, correlated=False):
    rng = np.random.default_rng(seed)
    theta = np.zeros(features)
    theta[:sparsity] = 1 / math.sqrt(sparsity)
    x = rng.choice([-1.0, 1.0], (users, features))
    if correlated:
        x = np.where(rng.random(x.shape) < math.sqrt(0.5), rng.choice([-1.0, 1.0], (users, 1)), x)
    return x, x @ theta + rng.uniform(-0.05, 0.05, users), theta


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_equations_are_those_of_least_squares(kind):
    x, y, _ = model(200, 6, 2, 0)
    rows, some = PublicRows(IDENTITY, (kind(x), y)), np.array([0, 3, 4])
    found = rows.equations(some, np.linspace(-1, 1, 6))
    expected, residual, *_ = np.linalg.lstsq(x[:, some], y)
    assert found.solution() == pytest.approx(expected)
    assert found.residual() == pytest.approx(residual[0])
    assert found.only(np.array([1])).solution() == pytest.approx(x[:, 3] @ y / (x[:, 3] @ x[:, 3]))
    assert rows.lengths() == pytest.approx(np.linalg.norm(x, axis=0))
    # two equal columns share the weight
    twins = PublicRows(IDENTITY, (kind(x[:, [0, 0]]), y)).equations(np.arange(2), np.zeros(2))
    assert twins.solution() == pytest.approx([twins.solution()[0]] * 2)


def test_a_tangent_of_the_link_leads_to_its_minimum():
    x, _, theta = model(2000, 4, 2, 1)
    y = LINEAR_PLUS_COSINE.function(x @ theta)
    rows, found = PublicRows(LINEAR_PLUS_COSINE, (x, y)), np.zeros(4)
    for _ in range(6):
        found = rows.equations(np.arange(4), found).solution()
    assert found == pytest.approx(theta, abs=1e-9)


def test_columns_that_noise_explains_are_left_out():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(5000, 30))
    y = 0.3 * x[:, 4] + 3 * rng.normal(size=5000)
    found = PublicRows(IDENTITY, (x, y)).equations(np.arange(30), np.zeros(30)).significant(30)
    assert found.columns.tolist() == [4]
    nothing = PublicRows(IDENTITY, (x, 3 * rng.normal(size=5000)))
    left = nothing.equations(np.arange(30), np.zeros(30)).significant(30)
    assert len(left.columns) <= 2


@pytest.mark.parametrize("correlated", [False, True])
def test_labels_of_least_noise_and_a_refit_beat_gaussian_gradient_steps(correlated):
    given = {"epsilon": 1.0, "delta": 1e-5, "y_bound": math.sqrt(5) + 0.05}
    makers = {
        "iht": LabelIHT(sparsity=5, **given), "lasso": LabelLasso(noise_bound=0.05, **given),
        "paper": LabelIHT(sparsity=5, randomizer="gaussian", step=default_step(), **given),
    }  # fmt: skip
    errors = {name: [] for name in makers}
    for seed in range(3):
        x, y, theta = model(10_000, 30, 5, seed, correlated)
        for name, made in makers.items():
            made.set_params(random_state=seed)
            errors[name].append(np.linalg.norm(made.fit(x, y).coef_ - theta))
    # measured about .02 and .3 to .9
    assert np.mean(errors["iht"]) < 0.2 * np.mean(errors["paper"])
    assert np.mean(errors["lasso"]) < 0.2 * np.mean(errors["paper"])


def test_stages_are_of_all_users_and_one_where_they_are_few_or_the_paper_is_asked_for():
    given = {"epsilon": 1.0, "delta": 0.0, "sparsity": 2, "y_bound": 1.0}
    ends = stage_ends(10_001)
    assert (ends[0], ends[-1], len(ends)) == (0, 10_001, 6)
    assert sorted(set(ends)) == ends
    assert len(LabelIHT(**given).plan((10_001, 4)).parts) == 5
    assert len(LabelIHT(**given).plan((1_999, 4)).parts) == 1
    assert stage_ends(2_000) == [0, 640, 760, 1260, 1380, 2000]  # by the shares
    assert len(LabelIHT(step=1.0, **given).plan((10_001, 4)).parts) == 1


def test_noise_of_the_labels_themselves_does_not_mislead_the_clip():
    rng, errors = np.random.default_rng(3), {"stages": [], "at once": []}
    for seed in range(4):
        x, y, theta = model(20_000, 10, 2, seed)
        y = y + rng.uniform(-2, 2, 20_000)  # far more than what the features explain
        given = {"epsilon": 2.0, "delta": 0.0, "sparsity": 2, "y_bound": 3.5}
        for name, more in {"stages": {}, "at once": {"step": 1.0}}.items():
            made = LabelIHT(random_state=seed, **given, **more)
            errors[name].append(np.linalg.norm(made.fit(x, y).coef_ - theta))
    assert np.mean(errors["stages"]) < 1.5 * np.mean(errors["at once"])


def test_residuals_are_clipped_and_sizes_are_asked_by_place():
    labels, guess = np.array([1e6, 0.3, -1e6, 0.1]), np.array([0.0, 0.2, 0.0, 0.2])
    found = ScaledResiduals(guess, 0.5, 2.0)(labels)
    assert found == pytest.approx([2.0, 0.4, -2.0, -0.4])
    sizes = ResidualSizes(guess, np.array([1.0, 0.2, 0.05]), 2.0)(labels)
    assert sizes.tolist() == [2.0, -2.0, 2.0, -2.0]


def clip_of_residuals(residuals, scale):
    """The clip that stages choose if the noise of this scale happens to be 0."""
    ledger = SimpleNamespace(
        plan=SimpleNamespace(parts=[Gaussian(scale)]),
        release_each=lambda mechanism, query, users: query(residuals[users]),
    )
    stages = LabelStages(ledger, IDENTITY, BOUND, [0, residuals.size])
    return stages._clip(slice(0, residuals.size, 1), np.zeros(residuals.size))


BOUND = 3.0
USERS = np.arange(500)  # a hundred for each of the five levels


@pytest.mark.parametrize(
    ("size", "share_of_bound"),  # the clip is the least half of a half that holds the residuals
    [(0.9, 1), (0.51, 1), (0.49, 2), (0.3, 2), (0.26, 2), (0.24, 4), (0.13, 4), (0.12, 8),
     (0.07, 8), (0.06, 16), (0.04, 16), (0.03, 32), (0.0, 32)],
)  # fmt: skip
def test_the_clip_is_the_least_level_that_holds_the_residuals(size, share_of_bound):
    signs = np.where(USERS % 2, 1.0, -1.0)
    assert clip_of_residuals(signs * size * BOUND, 1e-3) == BOUND / share_of_bound
    # Of three or four users none is asked about the last levels, which then do not fit.
    if share_of_bound < 16:
        for users in (3, 4):
            clip = clip_of_residuals((signs * size * BOUND)[:users], 1e-3)
            assert clip == BOUND / min(share_of_bound, 2**users)


@pytest.mark.parametrize("percent_beyond", [0, 10, 19, 21, 50])
def test_a_level_fits_if_a_fifth_of_residuals_and_a_deviation_are_not_beyond_it(percent_beyond):
    # Of the hundred users of each level so many have the residual of the bound, the others 0.
    place_in_level = USERS // 5
    residuals = np.where(place_in_level < percent_beyond, BOUND, 0.0)
    for deviation in (0.001, 0.05, 0.09, 0.11, 0.19, 0.21):
        # A report of plus or minus the bound is halved: the noise of a share is scale / (2 bound).
        clip = clip_of_residuals(residuals, deviation * 2 * BOUND * math.sqrt(100))
        is_fitting = percent_beyond / 100 + deviation <= 0.2
        assert clip == (BOUND / 32 if is_fitting else BOUND)


def test_every_stage_reports_what_the_fit_before_it_leaves():
    rng = np.random.default_rng(4)
    ends = [0, 40, 140, 200, 300, 360]
    x = rng.uniform(-1.0, 1.0, (360, 3))
    y = LINEAR_PLUS_COSINE.function(x @ np.array([0.4, -0.1, 0.05]))
    assert np.ptp(y[:40]) > 2 * BOUND  # some labels of the first stage are clipped
    released, fitted = [], []

    def release_each(mechanism, query, users):
        released.append(users)
        return query(y[users])

    # The first fit is nearer to the truth than the second: the least clip is not the last one.
    solutions = [np.array([0.4, -0.05]), np.array([0.4, 0.1]), np.array([0.1, 0.1])]

    def fit(data, clip):
        fitted.append((*(np.array(part) for part in data), clip))
        solution = solutions[len(fitted) - 1]
        return SimpleNamespace(columns=np.array([0, 1]), solution=lambda: solution)

    ledger = SimpleNamespace(
        plan=SimpleNamespace(parts=[Gaussian(1e-3)]), public=x, release_each=release_each
    )
    stages = LabelStages(ledger, LINEAR_PLUS_COSINE, BOUND, ends)
    assert stages.run(fit).solution() is solutions[2]
    assert [(users.start, users.stop) for users in released] == list(itertools.pairwise(ends))
    labels, clips = np.zeros(360), np.full(360, np.inf)  # who did not report has no clip
    predicted, clip = np.zeros(360), BOUND  # labels are reported as they are
    for stage, (features, reports, weights, least_clip) in zip((0, 2, 4), fitted, strict=True):
        users = slice(*ends[stage : stage + 2])
        if stage:  # the users before these have reported the sizes of their residuals
            predicted = LINEAR_PLUS_COSINE.function(x[:, :2] @ solutions[stage // 2 - 1])
            clip = clip_of_residuals((y - predicted)[ends[stage - 1] : ends[stage]], 1e-3)
        labels[users] = predicted[users] + np.clip((y - predicted)[users], -clip, clip)
        clips[users] = clip
        assert reports == pytest.approx(labels)
        assert weights == pytest.approx((clips.min() / clips) ** 2)
        assert least_clip == pytest.approx(clips.min())
        assert (features == x).all()
    assert len(set(clips.tolist())) == 4  # each stage has its own clip


def test_nothing_but_zeros_gives_zero():
    x = np.zeros((40, 3))
    made = LabelIHT(epsilon=1.0, delta=0.0, sparsity=2, y_bound=1.0, random_state=0)
    assert made.fit(x, np.ones(40)).coef_.tolist() == [0.0] * 3
    lasso = LabelLasso(epsilon=1.0, delta=0.0, y_bound=1.0, noise_bound=0.1, random_state=0)
    assert lasso.fit(x, np.ones(40)).coef_.tolist() == [0.0] * 3


@pytest.mark.parametrize(("epsilon", "kind"), [(1.0, "BinaryLabel"), (3.0, "PiecewiseUniform"),
                                              (6.0, "Staircase")])  # fmt: skip
def test_the_noise_follows_epsilon(epsilon, kind):
    made = LabelIHT(epsilon=epsilon, delta=1e-6, sparsity=1, y_bound=1.0)
    assert type(made.mechanism()).__name__ == kind
    named = {"BinaryLabel": "bounded", "PiecewiseUniform": "piecewise", "Staircase": "staircase"}
    by_name = made.set_params(randomizer=named[kind]).mechanism()
    assert by_name == made.set_params(randomizer="auto").mechanism()


def test_labels_in_stages_come_in_chunks_too_and_sparse():
    x, y, _ = model(3000, 8, 2, 5)
    made = LabelIHT(epsilon=1.0, delta=0.0, sparsity=2, y_bound=1.5, random_state=0)
    expected = made.fit(x, y).coef_.tobytes()
    pieces = Chunks(lambda: zip(np.array_split(x, 7), np.array_split(y, 7), strict=True), x.shape)
    assert made.fit(pieces).coef_.tobytes() == expected
    thin = made.fit(sparse.csr_array(x), y).coef_
    assert thin == pytest.approx(np.frombuffer(expected), abs=1e-9)
