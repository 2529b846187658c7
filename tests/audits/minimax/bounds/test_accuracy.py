"""The least epsilon of accurate answers: attained by counts, below everything that is found."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from accountant import ParameterError, Statistic, least_epsilon
from audits.minimax import least_epsilon_bound


def least_failure(error, sensitivity, epsilon, delta, reach=40):
    """The least P(|noise| > error) of noise on -reach..reach, by a linear programme.

    Its variables are the masses p_k and, for both directions of a move by the sensitivity, what
    each exceeds e^epsilon times the other: these excesses are at most delta in all.
    """
    size, shifts = 2 * reach + 1, (sensitivity, -sensitivity)
    values = np.arange(-reach, reach + 1)
    cost = np.concatenate([np.abs(values) > error, np.zeros(2 * size)]).astype(float)
    rows, limits = [], []
    for side, shift in enumerate(shifts):
        for k in range(size):
            row = np.zeros(3 * size)
            row[k], row[(side + 1) * size + k] = 1.0, -1.0
            if 0 <= k - shift < size:
                row[k - shift] -= math.exp(epsilon)
            rows.append(row)
            limits.append(0.0)
        total = np.zeros(3 * size)
        total[(side + 1) * size : (side + 2) * size] = 1.0
        rows.append(total)
        limits.append(delta)
    equal = np.concatenate([np.ones(size), np.zeros(2 * size)])[None]
    answer = linprog(cost, np.array(rows), limits, equal, [1.0], method="highs")
    return answer.fun


@pytest.mark.parametrize(
    ("error", "sensitivity", "probability", "delta"),
    [(2, 1, 0.9, 1e-2), (4, 1, 0.99, 1e-3), (1, 1, 0.8, 0.05), (3, 2, 0.9, 1e-2)],
)
def test_linear_programmes_over_all_noise_find_no_smaller_epsilon(
    error, sensitivity, probability, delta
):
    bound = least_epsilon_bound([Statistic("count", error, probability, 1, sensitivity)], delta)
    assert least_failure(error, sensitivity, 0.999 * bound, delta) > 1 - probability
    if sensitivity == 1:  # attained, but for the mass beyond the reach
        assert least_failure(error, sensitivity, 1.001 * bound, delta) <= 1 - probability


def random_statistics(rng):
    kinds = rng.choice(["count", "sum", "selection"], size=rng.integers(1, 4))
    for kind in kinds:
        common = {"probability": float(rng.uniform(0.5, 0.999)), "count": int(rng.integers(1, 30))}
        if kind == "count":
            sensitivity = float(rng.integers(1, 4))
        else:
            sensitivity = float(10 ** rng.uniform(-1, 1))
        error = sensitivity * float(10 ** rng.uniform(-0.3, 2))
        if kind == "selection":
            common |= {
                "candidates": int(rng.integers(2, 500)),
                "monotone": bool(rng.random() < 0.5),
            }
            common["count"] = int(rng.integers(1, 3))
        yield Statistic(str(kind), error, sensitivity=sensitivity, **common)


@pytest.mark.parametrize("seed", range(8))
def test_no_mechanism_that_is_found_has_less(seed):
    rng = np.random.default_rng(seed)
    statistics, delta = list(random_statistics(rng)), float(rng.choice([0.0, 1e-9, 1e-6, 1e-3]))
    found = least_epsilon(statistics, delta)
    assert 0 < least_epsilon_bound(statistics, delta) <= found.epsilon


CASES = [
    Statistic("count", 5.0, count=30),
    Statistic("sum", 2.0, 0.9, 400, 0.5),
    Statistic("selection", 20.0, candidates=40),
    Statistic("count", 8.0, count=2000),
]


@pytest.mark.parametrize("statistic", CASES, ids=lambda s: f"{s.count} {s.kind}")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_bound_grows_with_what_is_asked(statistic, delta):
    bound = least_epsilon_bound([statistic], delta)
    harder = [
        {"error": 0.6 * statistic.error},
        {"probability": 0.99},
        {"count": 3 * statistic.count},
        {"sensitivity": 2 * statistic.sensitivity},
    ]
    for change in harder:
        assert least_epsilon_bound([dataclasses.replace(statistic, **change)], delta) >= bound
    both = [statistic, Statistic("count", 5.0)]
    assert least_epsilon_bound(both, delta) >= bound * (1 - 1e-6)
    assert least_epsilon_bound([statistic], 1e-3) <= bound


@pytest.mark.parametrize(
    ("count", "error", "delta", "at_least"),
    # half of what each argument alone gives: 2,000 counts need traces, 50 at delta 0 packings
    [(2000, 8.0, 1e-6, 8.0), (50, 5.0, 0.0, 2.0), (1, 3.0, 0.0, 0.8)],
)
def test_each_of_the_three_arguments_counts(count, error, delta, at_least):
    assert least_epsilon_bound([Statistic("count", error, count=count)], delta) > at_least


def test_answers_between_whole_numbers_are_mechanisms_too():
    """Half a number off, an answer is right for two counts: P(|noise| > 1/2) = e^-epsilon."""
    half = least_epsilon_bound([Statistic("count", 0.5, 0.9)], 0.0)
    assert half <= math.log(10)
    assert half < least_epsilon_bound([Statistic("count", 0.4, 0.9)], 0.0)


def test_extremes_are_bounded():
    assert least_epsilon_bound([Statistic("selection", 1.0, 0.005, candidates=9)], 0.0) == 0.0
    assert least_epsilon_bound([Statistic("sum", 1e300, sensitivity=1e-300)], 0.0) == 0.0
    assert least_epsilon_bound([Statistic("count", 3.0)], 0.99) == 0.0
    many = Statistic("count", 0.5, 0.999999, count=100_000)
    assert least_epsilon_bound([many], 0.0) == 700.0
    assert 0 < least_epsilon_bound([Statistic("sum", 1e9, sensitivity=1.0)], 0.0) < 1e-8
    with pytest.raises(ParameterError, match="Statistic"):
        least_epsilon_bound([1.0], 0.0)
    with pytest.raises(ParameterError, match="delta"):
        least_epsilon_bound([many], math.nan)
