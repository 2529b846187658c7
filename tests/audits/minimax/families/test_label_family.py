"""The pair and its multiples: laws, samples, losses; what private labels leave of an optimum."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from accountant.errors import ParameterError
from audits.minimax import LabelFamily, SignedBasis, label_optimisation
from audits.minimax.checks.enumeration import joint_distribution, subset_channel
from audits.minimax.families.paired_shares import PairedShares
from audits.minimax.families.sign_means import SignCopies, SignMeans

FAMILIES = [LabelFamily(2, 0.4), LabelFamily(6, 1.0, 3.0, 0.5), LabelFamily(4, 0.2, 0.1, 7.0)]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"k{f.k}-d{f.d}")


@each_family
def test_samples_follow_the_shares(family):
    rng, draws = np.random.default_rng(4), 50_000
    for which in range(family.points):
        shares = family.shares(which)
        assert shares.sum() == pytest.approx(1)
        seen = np.bincount(family.sample(which, draws, rng), minlength=family.k)
        assert not seen[shares == 0].any()
        some = shares > 0
        statistic = ((seen - draws * shares)[some] ** 2 / (draws * shares[some])).sum()
        # false alarms: 1e-8 for each of 14
        assert statistic < chi2.isf(1e-8, some.sum() - 1)


@each_family
def test_the_parameter_is_the_minimiser_and_the_loss_has_its_slope(family):
    for which in range(family.points):
        best = family.parameter(which)
        assert np.linalg.norm(best) == pytest.approx(family.diameter / 2)
        assert family.excess(which, best) == pytest.approx(0, abs=1e-12)
        assert family.decode(best) == which
        found = minimize(
            lambda theta, which=which: family.excess(
                which, theta * family.diameter / 2 / max(1.0, np.linalg.norm(theta))
            ),
            np.full(family.k, 0.1),
        )
        assert found.fun == pytest.approx(0, abs=1e-6 * family.lipschitz * family.diameter)
    theta = np.random.default_rng(0).normal(size=family.k)
    for label in range(family.k):
        gradient = [
            (family.losses(theta + 1e-6 * e)[label] - family.losses(theta)[label]) / 1e-6
            for e in np.eye(family.k)
        ]
        assert np.linalg.norm(gradient) == pytest.approx(family.lipschitz, rel=1e-4)


@each_family
def test_separation(family):
    points = [family.parameter(i) for i in range(family.points)]
    apart = min(np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[i + 1 :])
    assert family.separation <= apart
    assert family.separation == pytest.approx(apart)


@pytest.mark.parametrize(
    ("k", "n", "epsilon"), [(2, 1, 0.5), (4, 2, 1.0), (6, 1, 2.0), (4, 3, 0.2)]
)
def test_no_enumerated_protocol_beats_the_bound(k, n, epsilon):
    # the best estimate of all from any subset channel's reports: against the posterior mean
    bound = label_optimisation(n, k, epsilon)
    family = bound.construction
    assert family.k <= k
    law = np.array([family.shares(which) for which in range(family.points)])
    least = math.inf
    for size in range(1, family.k):
        joint = joint_distribution([law @ subset_channel(family.k, size, epsilon)] * n)
        # a linear loss: the radius times the length of the mean shift, and the least of each point
        shift = family.slope * joint.T @ (law - 1 / family.k) / family.points
        reached = -family.diameter / 2 * np.linalg.norm(shift, axis=1).sum()
        whole = family.slope * family.diameter / 2 * np.linalg.norm(law[0] - 1 / family.k)
        least = min(least, whole + reached)
    assert least >= bound.value
    assert least <= 3 * bound.value  # and it is no empty bound


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.float32])
@pytest.mark.parametrize(
    "family",
    [LabelFamily(8, 0.4), PairedShares(8), SignMeans(8), SignCopies(8, 4, 1), SignedBasis(8, 0.7)],
    ids=lambda f: type(f).__name__,
)
def test_an_estimate_may_be_of_numbers_of_any_type(family, dtype):
    # differences of whole numbers without a sign wrap around, and those of truth values are none
    for seed in range(8):
        estimate = np.random.default_rng(seed).integers(-128, 128, 8).astype(dtype)
        numbers = estimate.astype(float)
        assert family.decode(estimate) == family.decode(numbers) == family.decode(numbers.tolist())
    for shape in ((7,), (9,), (1, 8), ()):
        with pytest.raises(ParameterError, match="estimate"):
            family.decode(np.zeros(shape, dtype=dtype))


def test_wrong_families_are_refused():
    for call in (
        lambda: LabelFamily(3, 0.5),
        lambda: LabelFamily(4, 0.0),
        lambda: LabelFamily(4, 0.5, -1.0),
        lambda: LabelFamily(4, 0.5).parameter(4),
        lambda: LabelFamily(4, 0.5).decode(np.zeros(5)),
        lambda: LabelFamily(4, 0.5).sample(0, 0, np.random.default_rng(0)),
    ):
        with pytest.raises(ParameterError):
            call()
