"""Tracing: central algorithms without noise fall, with it they stay at chance; the test is fair."""

import math
import time

import numpy as np
import pytest
from scipy.stats import binom

from accountant import GaussianLoss, ParameterError, Stated, Tight
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    PrivateLasso,
    PrivateLogisticLasso,
    SignVote,
    SparseERM,
    ThresholdedMean,
    ThresholdedRegression,
)
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.frank_wolfe.polytopes import L1Ball
from audits.claims.findings import Outcome
from audits.minimax.families.fingerprints import append_ridge_twice
from audits.utility.tracing import FALSE_POSITIVE_RATES, audit_tracing
from tests.processor_time import standard

DELTA = 1e-10  # times the number of pairs it is far below the error of every verdict here
SMALL = {"features": 256, "rows": 8, "runs": 12, "delta": DELTA}


def members_alone(x, y):
    return x[y == 1]


def one_record_a_machine(x, y):
    return x[:, None, :], y[:, None]


CENTRAL = {
    "lasso": (PrivateLasso(1.0, DELTA, rounds=200, fit_intercept=False), None),
    "lasso, laplace": (
        PrivateLasso(1.0, DELTA, rounds=200, fit_intercept=False, selection="laplace"), None,
    ),
    "logistic lasso": (
        PrivateLogisticLasso(1.0, DELTA, rounds=200, fit_intercept=False), append_ridge_twice,
    ),
    "Frank-Wolfe": (FrankWolfe("squared", L1Ball(1.0), 1.0, DELTA, rounds=200), None),
    "Gaussian Frank-Wolfe": (
        GaussianFrankWolfe("squared", L2Ball(1.0), 1.0, DELTA, rounds=50, row_bound=16.0), None,
    ),
    "squared ERM": (
        SparseERM(loss="squared", epsilon=1.0, delta=DELTA, sparsity=256, rounds=50,
                  row_bound=16.0, fit_intercept=False), None,
    ),
    "logistic ERM": (
        SparseERM(loss="logistic", epsilon=1.0, delta=DELTA, sparsity=256, rounds=50,
                  row_bound=16.0, fit_intercept=False), append_ridge_twice,
    ),
    "vote": (SignVote(1.0, DELTA, k=64, threshold=0.0), members_alone),
    "thresholded mean": (ThresholdedMean(1.0, DELTA, sparsity=64, x_bound=1.0), members_alone),
    "thresholded regression": (
        ThresholdedRegression(1.0, DELTA, sparsity=128, x_bound=1.0, y_bound=1.0, radius=1.0,
                              rounds=3, step=0.1), one_record_a_machine,
    ),
}  # fmt: skip
# their selections and gradients are those of the other cases, with other settings
ALIKE = {"lasso, laplace", "logistic lasso", "Frank-Wolfe", "squared ERM"}
every_central = pytest.mark.parametrize(
    ("algorithm", "data_of"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in ALIKE else [])
        for name, case in CENTRAL.items()
    ],
)


@every_central
def test_central_algorithms_without_noise_fall(algorithm, data_of):
    # an honest one would be falsified at 1 - 1e-6 with probability 1e-6; epsilon is its plan's
    found = audit_tracing(
        algorithm, data_of=data_of, noise=0.0, confidence=1 - 1e-6, rng=1, **SMALL | {"runs": 20}
    )
    assert found.outcome is Outcome.FALSIFIED
    assert found.claimed <= 1.0 < found.epsilon_lower
    assert found.true_positives(0.05) > 0.4
    assert "noise times 0" in found.witness


@every_central
def test_with_their_noise_they_stay_at_chance(algorithm, data_of):
    # false with probability 1e-6 at most, by the audit's own confidence
    found = audit_tracing(algorithm, data_of=data_of, confidence=1 - 1e-6, rng=2, **SMALL)
    assert found.outcome is Outcome.SURVIVED
    # members' scores are those of strangers but for epsilon: far from the 1.8 of a leak
    assert found.members.mean() < 0.8
    # 96 pairs at q <= e / (1 + e): 90 right with probability below 1e-6
    assert binom.sf(89, found.pairs, 1 / (1 + math.exp(-1))) < 1e-5
    assert found.right < 90


def test_a_function_and_an_estimator_are_audited_too():
    from sklearn.linear_model import Ridge

    def least_squares(x, y, rng):
        del rng
        return x.T @ y

    def noise_alone(x, y, rng):
        del y
        return rng.normal(size=x.shape[1])

    def turned(x, y, rng, noise):
        # sum of signs: sensitivity 2 in each of 256 coordinates
        return x.T @ y + noise * rng.laplace(scale=2 * 256 / 1.0, size=x.shape[1])

    setting = SMALL | {"delta": 0.0}
    for leaky in (least_squares, Ridge(alpha=1.0, fit_intercept=False)):
        found = audit_tracing(leaky, 1.0, rng=0, **setting)
        assert found.outcome is Outcome.FALSIFIED
        assert found.claimed == 1.0
        without_claim = audit_tracing(leaky, rng=0, **setting)
        assert without_claim.claimed is None
        assert without_claim.outcome is Outcome.SURVIVED
        assert without_claim.epsilon_lower == found.epsilon_lower
    assert audit_tracing(noise_alone, 1.0, rng=0, **setting).outcome is Outcome.SURVIVED
    found = audit_tracing(turned, 1.0, rng=0, search=6, **setting)
    assert found.outcome is Outcome.SURVIVED
    assert 0.001 < found.noise_factor < 0.3
    assert f"noise times {found.noise_factor:.3g}" in found.witness


def test_the_largest_factor_falsifies_and_its_runs_are_its_own():
    algorithm = PrivateLasso(1.0, DELTA, rounds=100, fit_intercept=False)
    found = audit_tracing(algorithm, search=5, rng=3, **SMALL)
    plain = audit_tracing(algorithm, rng=3, **SMALL)
    assert plain.noise_factor is None
    assert (found.right, found.epsilon_lower) == (plain.right, plain.epsilon_lower)
    assert 0 < found.noise_factor < 1
    at = audit_tracing(algorithm, noise=found.noise_factor / 2, rng=4, **SMALL)
    assert at.outcome is Outcome.FALSIFIED


def test_without_a_search_there_is_no_factor():
    traced = audit_tracing(lambda x, y, rng: x.T @ y, 1.0, rng=1, **SMALL)
    assert traced.noise_factor is None


def test_same_seed_same_scores():
    one, two = (
        audit_tracing(PrivateLasso(1.0, DELTA, rounds=20, fit_intercept=False), rng=5, **SMALL)
        for _ in range(2)
    )
    assert np.array_equal(one.members, two.members)
    assert one.seed == 5
    other = audit_tracing(PrivateLasso(1.0, DELTA, rounds=20, fit_intercept=False), rng=6, **SMALL)
    assert not np.array_equal(one.members, other.members)


def test_the_curve_is_that_of_the_scores():
    found = audit_tracing(
        PrivateLasso(1.0, DELTA, rounds=200, fit_intercept=False), noise=0.0, rng=1, **SMALL
    )
    assert [rate for rate, _ in found.curve] == list(FALSE_POSITIVE_RATES)
    shares = [share for _, share in found.curve]
    assert shares == sorted(shares)
    for rate, share in found.curve:
        # the best threshold among all scores that so few strangers exceed
        cuts = np.append(found.others, found.members)
        allowed = [cut for cut in cuts if np.mean(found.others > cut) <= rate]
        assert share == max(np.mean(found.members > cut) for cut in allowed)


def test_zeros_are_guessed_by_a_coin():
    found = audit_tracing(lambda x, y, rng: np.zeros(x.shape[1]), 0.0, rng=7, **SMALL)
    assert abs(found.right - 48) < 5 * math.sqrt(96 / 4)  # 6e-7


@pytest.mark.slow
def test_a_randomised_answer_of_exactly_epsilon_is_falsified_as_rarely_as_stated():
    """The worst honest algorithm: it tells each place by a response of epsilon.

    400 audits at 90 %: 80 or more false ones of 40 expected have probability below 1e-6.
    """
    assert binom.sf(79, 400, 0.1) < 1e-6

    def responding(x, y, rng):
        # keep each member with probability q, else a stranger: q is epsilon-DP for replaced records
        members = x[y == 1]
        fresh = np.where(rng.random(members.shape) < 0.5, 1.0, -1.0)
        keep = rng.random(len(members)) < math.tanh(0.5)
        return np.where(keep[:, None], members, fresh).sum(axis=0)

    wrong = sum(
        audit_tracing(responding, 1.0, rows=4, features=64, runs=3, confidence=0.9, rng=seed)
        .outcome is Outcome.FALSIFIED
        for seed in range(400)
    )  # fmt: skip
    assert wrong < 80


@pytest.mark.slow
def test_the_figure_of_the_issue():
    """w = 24, p = k = 2048: TPR 1.00 at 5 % false positives, at chance for the private one."""
    algorithm = PrivateLasso(1.0, DELTA, rounds=400, fit_intercept=False)
    start = time.process_time()
    free = audit_tracing(algorithm, delta=DELTA, noise=0.0, rng=1)
    assert free.true_positives(0.05) == 1.0
    assert free.outcome is Outcome.FALSIFIED
    assert free.members.mean() == pytest.approx(2.94, abs=0.3)
    private = audit_tracing(algorithm, delta=DELTA, rng=1)
    assert private.outcome is Outcome.SURVIVED
    assert private.true_positives(0.05) < 0.25
    assert standard(time.process_time() - start) < 130


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"runs": 0}, "runs"), ({"rows": 1}, "rows"), ({"features": 100}, "power of two"),
        ({"delta": 1.0}, "delta"), ({"noise": 1.5}, "noise"), ({"confidence": 1.0}, "confidence"),
        ({"epsilon": math.nan}, "epsilon"), ({"search": -1}, "search"), ({"rng": -1}, "rng"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(changed, words):
    with pytest.raises(ParameterError, match=words):
        audit_tracing(PrivateLasso(1.0, DELTA, rounds=2, fit_intercept=False), **SMALL | changed)


def test_what_cannot_be_judged_is_refused():
    def fit(x, y, rng):
        return np.zeros(3)

    with pytest.raises(ParameterError, match="coefficients"):
        audit_tracing(fit, 1.0, **SMALL)
    with pytest.raises(ParameterError, match="out of reach"):
        audit_tracing(fit, 1.0, noise=0.5, **SMALL)
    with pytest.raises(ParameterError, match="no claim"):
        audit_tracing(lambda *_: pytest.fail("a fit before the refusal"), search=2, **SMALL)
    with pytest.raises(ParameterError, match="algorithm"):
        audit_tracing(3, 1.0, **SMALL)
    with pytest.raises(ParameterError, match="replaced records"):
        audit_tracing(
            PrivateLasso(1.0, DELTA, rounds=2, fit_intercept=False, relation="add-remove"), **SMALL
        )
    with pytest.raises(ParameterError, match="replaced records"):
        audit_tracing(LabelIHT(epsilon=1.0, delta=DELTA, sparsity=1, y_bound=1.0), **SMALL)


@pytest.mark.parametrize(("relation", "is_for_replaced"), [
    ("add-remove", False), ("zero-out", False), ("label-replace", False), ("replace-one", True),
])  # fmt: skip
def test_the_cost_of_a_plan_is_a_claim_for_replaced_records_alone(relation, is_for_replaced):
    class Sum:
        def plan(self, shape, public=None):
            return Stated(GaussianLoss(1.0), relation)

        def run(self, ledger):
            return np.zeros(256)

    if is_for_replaced:
        claimed = Tight().epsilon(GaussianLoss(1.0), DELTA)
        assert audit_tracing(Sum(), rng=0, **SMALL).claimed == claimed
    else:
        with pytest.raises(ParameterError, match="not for replaced records"):
            audit_tracing(Sum(), rng=0, **SMALL)


@pytest.mark.parametrize("rate", [1.0, -0.1, math.nan, True])
def test_a_false_positive_rate_is_at_least_0_and_below_1(rate):
    traced = audit_tracing(lambda x, y, rng: x.T @ y, rng=1, **SMALL)
    assert traced.true_positives(0.0) <= traced.true_positives(0.999)
    with pytest.raises(ParameterError, match="rate must be"):
        traced.true_positives(rate)
