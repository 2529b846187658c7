"""Runs of a matrix mechanism whose steps use records at random: laws of uses, bounds, refusals."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri

from accountant import (
    AmplifiedMatrix,
    BallsInBins,
    BinaryTree,
    FixedEpochs,
    GaussianLoss,
    ParameterError,
    PoissonSampled,
    RandomAllocation,
    SpacedPoisson,
    StrategyMatrix,
    Tight,
    Toeplitz,
    calibrate,
    cyclic_poisson,
    sensitivity,
)
from accountant.correlated_noise.chain_of_bins import SPLIT_VARIANCE, chain_above, chain_below
from accountant.correlated_noise.spaced_poisson import step_count, thinned_chance, use_chances
from benchmarks.bench_sampling_schemes import matrix_rows

EPSILONS = np.array([0.0, 0.3, 1.0, 2.0, 4.0])


def test_bins_apart_cost_what_an_allocation_does():
    allocated = RandomAllocation(GaussianLoss(1.0), 12).loss
    for_removed, for_added = chain_above(1.0, 0.0, 12, is_cycle=False)
    below = chain_below(1.0, 0.0, 12, block=1)
    removed, added = allocated.profile(EPSILONS), allocated.reversed.profile(EPSILONS)
    for pair in (for_removed, for_added):  # each is above in both directions
        assert (pair.profile(EPSILONS) >= removed).all()
        assert (pair.reversed.profile(EPSILONS) >= added).all()
    assert (below.profile(EPSILONS) <= removed).all()
    assert (below.reversed.profile(EPSILONS) <= added).all()
    assert for_removed.inverse_profile(1e-4) < 1.03 * below.inverse_profile(1e-4)


def test_a_split_is_below_a_gaussian_of_the_variance_that_is_spared():
    chances = np.linspace(1e-6, 1 - 1e-6, 100_001)
    density = np.exp(-(ndtri(chances) ** 2) / 2) / math.sqrt(2 * math.pi)
    assert ((chances * (1 - chances) / density) ** 2).max() < SPLIT_VARIANCE


@pytest.mark.parametrize(
    ("bins", "epochs", "scale"), [(5, 3, 1.6), pytest.param(40, 2, 0.9, marks=pytest.mark.slow)]
)
def test_the_ends_are_around_a_drawn_run(bins, epochs, scale):
    # a cycle that is closed, and one of which bins are left out
    strategy, rng, runs = Toeplitz((0.8, 0.5, 0.3), bins * epochs), np.random.default_rng(7), 10**5
    uses = np.arange(strategy.columns)[:, None] % bins == np.arange(bins)
    shifts = strategy.times(uses.astype(float)) / scale
    products = shifts.T @ shifts
    root = np.linalg.cholesky(products)
    drawn = products[rng.integers(bins, size=runs)] + rng.standard_normal((runs, bins)) @ root.T
    ratios = np.exp(drawn - np.diag(products) / 2).mean(axis=1)
    loss = AmplifiedMatrix(strategy, scale, BallsInBins(bins)).loss
    below = loss.attained_pair
    for epsilon in (0.3, 1.0, 2.0):
        excess = np.maximum(1 - np.exp(epsilon) / ratios, 0.0)
        wide = 5 * excess.std() / math.sqrt(runs)  # false alarms: 6e-7 each
        assert loss.profile(epsilon) > excess.mean() - wide
        assert below.profile(epsilon) < excess.mean() + wide


def test_one_bin_is_fixed_epochs():
    strategy = Toeplitz((1.0, 0.5), 6)
    found = Tight().certify(AmplifiedMatrix(strategy, 2.0, BallsInBins(1)), 1e-5)
    gaussian = GaussianLoss(sensitivity(strategy, FixedEpochs(6)).value / 2)
    assert found.upper == pytest.approx(Tight().epsilon(gaussian, 1e-5), rel=1e-6)
    assert found.lower == pytest.approx(found.upper, rel=1e-6)


@pytest.mark.slow
def test_more_noise_costs_less():
    strategy = Toeplitz((1.0, 0.6), 12)
    for sampling in (BallsInBins(4), SpacedPoisson(0.1, 3)):
        costs = [
            Tight().certify(AmplifiedMatrix(strategy, scale, sampling), 1e-5)
            for scale in (1.0, 2.0, 4.0)
        ]
        assert all(a.upper > b.upper for a, b in itertools.pairwise(costs))
        assert all(cost.lower <= cost.upper for cost in costs)


def test_without_a_rest_it_is_poisson_sampling():
    plan = AmplifiedMatrix(Toeplitz((1.0,), 50), 1.0, SpacedPoisson(0.05, 1))
    found = Tight().certify(plan, 1e-6)
    true = Tight().epsilon(50 * PoissonSampled(GaussianLoss(1.0), 0.05), 1e-6)
    assert found.lower <= true <= found.upper
    assert found.upper == pytest.approx(true, rel=1e-4)
    assert found.lower == pytest.approx(true, rel=0.02)


@pytest.mark.parametrize(("rate", "separation"), [(0.01, 2), (0.2, 3), (0.05, 9), (0.6, 2)])
def test_uses_are_a_thinned_set(rate, separation):
    """The gaps of the set, thinned, are those of uses; with less chance no set has such gaps."""
    chance, terms = thinned_chance(rate, separation), 3000

    def gaps_of(q):
        ratio = np.zeros(terms)
        ratio[0], a = 1.0, rate * (1 - q) / q
        for k in range(1, terms):
            ratio[k] = (1 - rate) * ratio[k - 1] - (a * ratio[k - separation] if k >= separation
                                                    else 0)  # fmt: skip
        return rate / q * ratio

    gaps = gaps_of(chance)
    assert gaps.min() >= 0
    assert gaps.sum() == pytest.approx(1, abs=1e-9)
    assert gaps_of(0.97 * chance).min() < 0
    thinned, kept = np.zeros(200), np.zeros(200)
    kept[0] = 1.0
    law = np.append(np.zeros(separation), gaps)[:200]
    for drops in range(60):
        kept = np.convolve(kept, law)[:200]
        thinned += chance * (1 - chance) ** drops * kept
    expected = np.append(np.zeros(separation), rate * (1 - rate) ** np.arange(200))[:200]
    places = 60 if separation > 1 else 20
    assert thinned[:places] == pytest.approx(expected[:places], abs=1e-9)


def test_the_set_is_seldom_greater_than_is_counted():
    rate, separation, steps = 0.05, 4, 300
    chance, rng = thinned_chance(rate, separation), np.random.default_rng(3)
    counted = step_count(rate, separation, steps)
    assert steps * rate / (1 + 3 * rate) / chance < counted < steps / separation
    assert step_count(1.0, separation, steps) == 75
    uses = sum(_uses(rate, separation, steps, rng).sum() for _ in range(50)) / 50
    assert uses == pytest.approx(steps * rate / (1 + 3 * rate), abs=2.5)


def _uses(rate, separation, steps, rng):
    share = rate / (1 + (separation - 1) * rate)
    start = rng.random()
    rests = int(start / share) + 1 if start < (separation - 1) * share else 0
    uses = np.zeros(steps)
    for step in range(steps):
        uses[step] = rests == 0 and rng.random() < rate
        rests = separation - 1 if uses[step] else max(rests - 1, 0)
    return uses


@pytest.mark.parametrize(("rate", "separation", "steps"), [(0.3, 3, 8), (0.5, 1, 5), (1.0, 2, 5)])
def test_chances_of_uses(rate, separation, steps):
    sampling = SpacedPoisson(rate, separation)
    states = {(0, 0): sampling.share / rate}  # uses so far, steps to rest
    states |= {(0, rests): sampling.share for rests in range(1, separation)}
    for _ in range(steps):
        after = {}
        for (uses, rests), chance in states.items():
            moves = (
                [((uses, rests - 1), 1.0)] if rests
                else [((uses + 1, separation - 1), rate), ((uses, 0), 1 - rate)]
            )  # fmt: skip
            for state, share in moves:
                after[state] = after.get(state, 0.0) + chance * share
        states = after
    chances = np.zeros(-(-steps // separation) + 1)
    for (uses, _), chance in states.items():
        chances[uses] += chance
    assert use_chances(sampling, steps) == pytest.approx(chances, abs=1e-12)


@pytest.mark.slow
def test_runs_add_up_and_stand_beside_others():
    plan = AmplifiedMatrix(Toeplitz((1.0, 0.5), 8), 2.0, BallsInBins(4))
    single, double = (Tight().certify(count * plan, 1e-5) for count in (1, 2))
    assert single.upper < double.upper < 2 * single.upper
    assert single.lower < double.lower <= double.upper
    spaced = AmplifiedMatrix(Toeplitz((1.0, 0.5), 8), 2.0, SpacedPoisson(0.2, 2))
    found = Tight().certify(2 * spaced + GaussianLoss(0.2), 1e-5)
    assert Tight().certify(GaussianLoss(0.2), 1e-5).lower < found.upper
    assert found.lower <= found.upper
    assert plan.reversed.reversed == plan


@pytest.mark.slow
def test_noise_is_found():
    strategy = Toeplitz((1.0, 0.5), 20)
    noise = calibrate(
        lambda scale: AmplifiedMatrix(strategy, scale, SpacedPoisson(0.05, 2)), epsilon=2.0,
        delta=1e-5)  # fmt: skip
    plan = AmplifiedMatrix(strategy, noise, SpacedPoisson(0.05, 2))
    assert Tight().epsilon(plan, 1e-5) == pytest.approx(2, abs=1e-3)
    turns = cyclic_poisson(strategy, noise, 2 * SpacedPoisson(0.05, 2).share)
    assert Tight().epsilon(turns, 1e-5) < 2


# What `python -m benchmarks.bench_sampling_schemes --matrix` printed, as the page has it.
ROWS = """
noise 4, δ 10⁻²: epsilon | noise 2, δ 10⁻⁴: epsilon
fixed order, 10 epochs | 1.6924 | - | 6.6197 |
cyclic Poisson, 4 groups, rate .4 | .9558 | - | 4.3604 |
balls in bins, 10 bins | .6920 to .8196 | .753 | 4.2291 to 4.5623 | 4.465
b-min-sep, separation 4, rate 1/7 | .4111 to 2.0306 | .708 | 1.9640 to 8.1899 | 3.204
"""


@pytest.mark.slow
def test_the_rows_of_the_page():
    cells = [row.split(" | ") for row in ROWS.strip().splitlines()[1:]]
    printed = [row[column] for column in (1, 3) for row in cells]
    for (_, plan, delta, _), cell in zip(matrix_rows(), printed, strict=True):
        found = Tight().certify(plan, delta)
        ends = [float(end) for end in cell.strip(" |").split(" to ")]
        assert found.lower == pytest.approx(ends[0], abs=6e-5)
        assert found.upper == pytest.approx(ends[-1], abs=6e-5)


@pytest.mark.parametrize(
    ("strategy", "sampling", "given", "match"),
    [
        (BinaryTree(8), BallsInBins(2), {}, "lower triangular"),
        (StrategyMatrix(np.ones((3, 3))), BallsInBins(2), {}, "lower triangular"),
        (Toeplitz((1, 1), 9), BallsInBins(10), {}, "bins must be at most the 9 steps"),
        (Toeplitz((1, 1, 1), 9), SpacedPoisson(0.1, 2), {}, "from 3, the strategy's bands"),
        (Toeplitz((1, 1), 9), SpacedPoisson(0.1, 10), {}, "to 9, its steps"),
        (Toeplitz((1, 1), 9), FixedEpochs(3), {}, "BallsInBins"),
        (np.eye(3), BallsInBins(3), {}, "a strategy"),
        (Toeplitz((1, 1), 9), BallsInBins(3), {"scale": 0.0}, "scale"),
        (Toeplitz((1, 1), 9), BallsInBins(3), {"scale": True}, "scale"),
        (Toeplitz((1, 1), 9), BallsInBins(3), {"scale": 1e-200}, "scale must be step_sensitivity"),
        (Toeplitz((1, 1), 9), SpacedPoisson(0.1, 2), {"scale": 1e200}, "scale must be step"),
        (Toeplitz((1, 1), 9), BallsInBins(3), {"step_sensitivity": math.inf}, "step_sensitivity"),
        (Toeplitz((1, 1), 9), BallsInBins(3), {"relation": "replace-one"}, "relation"),
    ],
)
def test_what_does_not_fit_is_refused(strategy, sampling, given, match):
    with pytest.raises(ParameterError, match=match):
        AmplifiedMatrix(strategy, **{"scale": 1.0, "sampling": sampling, **given})


@pytest.mark.parametrize("rate", [0.0, 1.5, math.nan, True])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ParameterError, match="rate"):
        SpacedPoisson(rate, 2)


@pytest.mark.parametrize("bins", [0, 2.5, True])
def test_a_number_of_bins_that_is_none_is_refused(bins):
    with pytest.raises(ParameterError, match="bins"):
        BallsInBins(bins)
