"""Law: no run costs more than the bound of its random steps, and none less than the pair below.

The steps are few, so that the mixture of all placements is summed on a grid of the plane or of
space.  Both directions are compared, at epsilons that may be negative.  The law holds on any
lattice; here that of a chain is coarse, which is quick.
"""

import itertools
from unittest import mock

import numpy as np
import pytest

from accountant import AmplifiedMatrix, BallsInBins, BandedMatrix, SpacedPoisson, Toeplitz
from accountant.correlated_noise import balls_in_bins, chain_of_bins, spaced_poisson

SLACK = 5e-3  # of a delta, relative, and 2e-7 more: what the grid may be off
ROUGH = chain_of_bins.Resolution(0.4, 0.1)
EPSILONS = (-0.5, 0.0, 0.4, 1.2, 2.5)
CASES = {
    "two bins": AmplifiedMatrix(Toeplitz((1.0, 0.6), 4), 1.1, BallsInBins(2)),
    "two bins, each once": AmplifiedMatrix(Toeplitz((1.0, 0.8), 2), 0.8, BallsInBins(2)),
    "a cycle of three": AmplifiedMatrix(Toeplitz((1.0, 0.4), 6), 2.0, BallsInBins(3)),
    "three in a row": AmplifiedMatrix(Toeplitz((1.0, 0.7, 0.3), 3), 0.7, BallsInBins(3)),
    "opposite signs": AmplifiedMatrix(Toeplitz((1.0, -0.6), 6), 1.5, BallsInBins(3)),
    "columns of many lengths": AmplifiedMatrix(
        BandedMatrix([[0.5, 1.0, 0.7], [0.5, 0.2, 0.0]]), 0.6, BallsInBins(3)
    ),
    "few use a record": AmplifiedMatrix(Toeplitz((1.0, 0.6), 3), 1.0, SpacedPoisson(0.2, 2)),
    "many use a record": AmplifiedMatrix(Toeplitz((1.0, 0.6), 3), 0.7, SpacedPoisson(0.8, 2)),
    "no rest": AmplifiedMatrix(Toeplitz((1.0,), 3), 0.9, SpacedPoisson(0.3, 1)),
}


def placements(sampling, steps):
    """Every set of steps that uses a record, as rows of 0 and 1, and its chance."""
    if isinstance(sampling, BallsInBins):
        rows = np.arange(steps) % sampling.bins == np.arange(sampling.bins)[:, None]
        return rows.astype(float), np.full(sampling.bins, 1 / sampling.bins)
    chances = {}
    rest, share = sampling.separation - 1, sampling.share
    starts = [(0, share / sampling.rate), *((rests, share) for rests in range(1, rest + 1))]
    for start, chance_of_start in starts:
        states = [((), start, chance_of_start)]  # the uses so far, steps to rest, the chance
        for _ in range(steps):
            states = [
                state
                for uses, rests, chance in states
                for state in (
                    [((*uses, 0), rests - 1, chance)]
                    if rests
                    else [
                        ((*uses, 1), rest, chance * sampling.rate),
                        ((*uses, 0), 0, chance * (1 - sampling.rate)),
                    ]
                )
            ]
        for uses, _, chance in states:
            chances[uses] = chances.get(uses, 0.0) + chance
    return np.array(list(chances), dtype=float), np.array(list(chances.values()))


def deltas_of_plan(plan, signs):
    """The deltas where a record moves steps by numbers of size 1 whose signs take turns."""
    steps = plan.strategy.columns
    uses, chances = placements(plan.sampling, steps)
    uses = uses * np.resize(signs, steps)
    return true_deltas(uses @ plan.strategy.times(np.eye(steps)).T / plan.scale, chances)


def true_deltas(shifts, chances):
    """The deltas of a removed and of an added record, at every epsilon, by a sum over a grid."""
    # Coordinates in the space of the shifts.
    basis = np.linalg.svd(shifts, full_matrices=False)[2]
    places = shifts @ basis[: np.linalg.matrix_rank(shifts)].T
    step = {1: 0.002, 2: 0.04, 3: 0.25}[places.shape[1]]
    axes = [np.arange(min(0, x.min()) - 7, max(0, x.max()) + 7, step) for x in places.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    q = step ** len(axes) * np.exp(-(grid**2).sum(axis=1) / 2) / (2 * np.pi) ** (len(axes) / 2)
    ratio = np.zeros(len(grid))
    for place, chance in zip(places, chances, strict=True):
        ratio += chance * np.exp(grid @ place - place @ place / 2)
    removed = [(q * np.maximum(ratio - np.exp(e), 0)).sum() for e in EPSILONS]
    added = [(q * np.maximum(1 - np.exp(e) * ratio, 0)).sum() for e in EPSILONS]
    return np.array([removed, added])


def forget():
    """Forget what was computed before a mutant came, or on another lattice."""
    for computed in (
        balls_in_bins.bin_products, balls_in_bins.bounds_of_bins, balls_in_bins.attained_by_bins,
        chain_of_bins.chain_above, chain_of_bins.chain_below,
        spaced_poisson.tests_below,
    ):  # fmt: skip
        getattr(computed, "cache_clear", lambda: None)()  # a mutant may keep nothing


def violation_of(name):
    plan = CASES[name]
    epsilons = np.array(EPSILONS)
    directions = (plan.loss, plan.reversed.loss)
    # The attained pair is that of equal vectors; the bound is one of all.
    for signs in itertools.product((1.0,), (1.0, -1.0)):
        truth = deltas_of_plan(plan, signs)
        for loss, true in zip(directions, truth, strict=True):
            if (loss.profile_any_epsilon(epsilons) < true * (1 - SLACK) - 2e-7).any():
                return f"{name}: a run costs more than its bound"
            below = loss.attained_pair.profile_any_epsilon(epsilons)
            if signs == (1.0, 1.0) and (below > true * (1 + SLACK) + 2e-7).any():
                return f"{name}: the pair below costs more than a run"
    return ""


def chain_violation(bins, is_cycle, variance=1.3, correlation=0.6):
    """What is wrong with the pairs above and below a chain of two bins, or three."""
    distance = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    inner = correlation**distance
    if is_cycle:
        inner = (inner + correlation ** (bins - distance)) / (1 + correlation**bins)
    shifts = np.linalg.cholesky(variance * inner)
    truth = true_deltas(shifts, np.full(bins, 1 / bins))
    epsilons = np.array(EPSILONS)
    for pair in chain_of_bins.chain_above(variance, correlation, bins, is_cycle):
        for loss, true in zip((pair, pair.reversed), truth, strict=True):
            if (loss.profile_any_epsilon(epsilons) < true * (1 - SLACK) - 2e-7).any():
                return "a chain costs more than the pair above"
    if not is_cycle:
        pair = chain_of_bins.chain_below(variance, correlation, bins, bins)
        for loss, true in zip((pair, pair.reversed), truth, strict=True):
            if (loss.profile_any_epsilon(epsilons) > true * (1 + SLACK) + 2e-7).any():
                return "a chain costs less than the pair below"
    return ""


CHAINS = ((2, False), (3, False), (3, True))


def violation(names=tuple(CASES), chains=CHAINS):
    forget()
    with mock.patch.multiple(chain_of_bins, FINE=ROUGH, COARSE=ROUGH, START_STEP=1.0):
        answers = itertools.chain(
            (chain_violation(*chain) for chain in chains), map(violation_of, names)
        )
        answer = next(filter(None, answers), "")
    forget()
    return answer


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_costs_what_its_pairs_say(chain):
    assert violation((), [chain]) == ""


@pytest.mark.parametrize("name", CASES)
def test_a_run_costs_what_its_bounds_say(name):
    assert violation([name], ()) == ""
