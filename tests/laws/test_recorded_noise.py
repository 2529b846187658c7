"""Law: a recorded run never reports a cost below what a function of noise truly costs.

What is added to a private sum that moves by 1 stays within 1/2 of 0 with a probability that draws
bound from below (Clopper-Pearson, false alarm 1e-9), so epsilon has a lower bound that knows
nothing of the recorder.  Linear maps A of Gaussian noise have the covariance A A', and cost that of
a shift by sqrt(d' (A A')^+ d), worked out here by eigenvectors.
"""

import copy
import functools
import json
import math
import operator
import pickle
import random
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, signal, special, stats

from accountant import BoundedRangeLoss, GaussianLoss, LaplaceLoss, PairLoss, Tight
from audits import Outcome, record
from tests.laws.common import FALSE_ALARM_RATE

DATA = np.arange(1.0, 7.0)
NEIGHBOUR = np.where(np.arange(6) == 2, DATA + 1, DATA)
DELTA, DRAWS, SCALE, SMALL = 1e-5, 1000, 10.0, 1e-6
MATRIX = np.array([[1.0, -2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, -1.0]])


def written_into(array):
    """A function that writes noise into a part of an array."""

    def made(n):
        found = array.copy()
        found[:] = n
        return SMALL * found

    return made


OF_AN_ARRAY = {
    "clip": lambda n: np.clip(n, -0.3, 0.3),
    "clip by name": lambda n: np.clip(n, a_min=-0.3, a_max=0.3),
    "clip method": lambda n: n.clip(-0.3, 0.3),
    "smaller of larger": lambda n: np.minimum(np.maximum(n, -0.3), 0.3),
    "sin": lambda n: 0.3 * np.sin(n),
    "math.sin": lambda n: 0.3 * math.sin(n[0]),
    "special function": lambda n: 0.3 * special.ndtr(n),
    "rint": lambda n: SMALL * np.rint(n),
    "round": lambda n: SMALL * n.round(1),
    "floor": lambda n: SMALL * math.floor(n[0]),
    "square": lambda n: SMALL * n**2,
    "product": lambda n: SMALL * n * n,
    "absolute": lambda n: SMALL * np.abs(n),
    "sign": lambda n: 0.3 * np.sign(n),
    "copysign": lambda n: np.copysign(0.3, n),
    "comparison": lambda n: 0.3 * (n > 0),
    "branch": lambda n: 0.3 if n[0] > 0 else -0.3,
    "where": lambda n: np.where(n > 0, 0.3, -0.3),
    "where it is positive": lambda n: SMALL * np.where(n > 0, n, 0.0),
    "selected": lambda n: SMALL * n[n > -99],
    "sorted": lambda n: SMALL * np.sort(n),
    "largest": lambda n: SMALL * n.max(),
    "max": lambda n: SMALL * max(n),
    "place of the largest": lambda n: 0.1 * n.argmax(),
    "median": lambda n: SMALL * np.median(n),
    "norm": lambda n: SMALL * np.linalg.norm(n),
    "deviation": lambda n: SMALL * n.std(),
    "float": lambda n: SMALL * float(n[0]),
    "int": lambda n: SMALL * int(n[0]),
    "another type": lambda n: SMALL * n.astype(np.float32),
    "sum of another type": lambda n: SMALL * np.sum(n, dtype=int),
    "text": lambda n: SMALL * float(f"{n[0]:.3f}"),
    "json": lambda n: SMALL * json.loads(json.dumps(n.tolist()))[0],
    "pickle": lambda n: SMALL * pickle.loads(pickle.dumps(n)),
    "deep copy": lambda n: SMALL * copy.deepcopy(n),
    "frame": lambda n: SMALL * pd.Series(n).to_numpy(),
    "plain array": lambda n: SMALL * n.view(np.ndarray),
    "buffer": lambda n: SMALL * np.frombuffer(n.tobytes()),
    "Fourier": lambda n: SMALL * np.fft.fft(n).real,
    "filter": lambda n: SMALL * signal.lfilter([1.0], [1.0, -0.5], n),
    "solved by scipy": lambda n: SMALL * linalg.solve(np.eye(3), n),
    "list": lambda n: SMALL * np.array(list(n)),
    "sum of a list": lambda n: SMALL * math.fsum(n),
    "mean of a list": lambda n: SMALL * statistics.mean(n.tolist()),
    "written into zeros": written_into(np.zeros(3)),
    "written into ones": written_into(np.ones(3)),
    "into an array": lambda n: np.multiply(n, SMALL, out=np.empty(3)),
    "in bins": lambda n: 0.1 * np.histogram(n, bins=3, range=(-9, 9))[0],
    "square form": lambda n: SMALL * np.einsum("i,i", n, n),
    "matrix": lambda n: SMALL * MATRIX @ n,
    "folded": lambda n: SMALL * functools.reduce(operator.add, n),
}  # fmt: skip
OF_A_GENERATOR = {
    name: (lambda rng, function=function: function(rng.normal(scale=SCALE, size=3)))
    for name, function in OF_AN_ARRAY.items()
} | {
    "gauss": lambda rng: SMALL * random.gauss(0, 1),
    "scipy": lambda rng: SMALL * stats.norm.rvs(size=3),
    "log of uniform": lambda rng: 0.01 * np.log(rng.random()),
    "lognormal": lambda rng: SMALL * rng.lognormal(),
    "Student": lambda rng: SMALL * rng.standard_t(5),
    "Gumbel": lambda rng: SMALL * rng.gumbel(),
    "whole": lambda rng: 0.1 * rng.integers(0, 5),
    "order": lambda rng: 0.1 * rng.permutation(3),
}  # fmt: skip


@functools.cache
def least_epsilon(name):
    """A lower bound of what `OF_A_GENERATOR[name]` costs, added to a sum that moves by 1."""
    rng, inside = np.random.default_rng(7), 0
    random.seed(7)
    for _ in range(DRAWS):
        inside += bool(np.abs(OF_A_GENERATOR[name](rng)).max() < 0.5)
    chance = stats.beta.ppf(FALSE_ALARM_RATE, inside, DRAWS - inside + 1)
    return math.log((chance - DELTA) / (1 - chance))


def violation(names=tuple(OF_A_GENERATOR)):
    """Where a cost is below the true one; "" nowhere."""
    for name in names:
        function = OF_A_GENERATOR[name]
        found = record(lambda a, rng, f=function: a.sum() + f(rng), DATA, NEIGHBOUR, delta=DELTA)
        if found.sound and not found.cost >= least_epsilon(name):
            return f"{name}: cost {found.cost:.4g}, and at least {least_epsilon(name):.4g}"
        if found.cost == 0:
            return f"{name}: a cost of 0"
    return ""


# of each way that the recorder takes there is one; the others take the same ways
OTHERS = {
    "clip by name", "smaller of larger", "sin", "special function", "rint", "round", "square",
    "copysign", "comparison", "branch", "where", "sorted", "largest", "median", "norm", "float",
    "int", "text", "plain array", "filter", "solved by scipy", "sum of a list", "mean of a list",
    "written into ones", "in bins", "lognormal", "Student",
}  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([name for name in OF_A_GENERATOR if name not in OTHERS], id="each way once"),
        pytest.param(sorted(OTHERS), id="others", marks=pytest.mark.slow),
    ],
)
def test_no_function_of_noise_is_cheaper_than_it_is(names):
    assert min(map(least_epsilon, names)) > 3.5
    assert violation(names) == ""


# --- linear maps

ROWS = np.array([[2.0, 0.5, 0.0, 0.0], [-1.0, 1.0, 0.0, 3.0], [0.0, 0.25, 1.0, -1.0]])
TWICE = ROWS[[0, 1, 0]]
LINEAR = {
    "matmul": (lambda n: ROWS @ n, ROWS),
    "of rank 2": (lambda n: TWICE @ n, TWICE),
    "matmul from the left": (lambda n: n @ ROWS.T, ROWS),
    "dot": (lambda n: np.dot(ROWS, n), ROWS),
    "dot method": (lambda n: n.dot(ROWS.T), ROWS),
    "inner": (lambda n: np.inner(ROWS, n), ROWS),
    "tensordot": (lambda n: np.tensordot(ROWS, n, 1), ROWS),
    "einsum": (lambda n: np.einsum("ij,j->i", ROWS, n), ROWS),
    "matmul of a product": (lambda n: ROWS @ (2 * n), 2 * ROWS),
    "sum of two maps": (lambda n: ROWS @ n + 0.5 * (ROWS @ n[::-1]), ROWS + 0.5 * ROWS[:, ::-1]),
    "rows in a loop": (lambda n: np.array([(r * n).sum() for r in ROWS]), ROWS),
    "cumsum": (lambda n: np.cumsum(n)[:3], np.tril(np.ones((3, 4)))),
    "sums": (lambda n: np.array([n.sum(), np.sum(n[:2]), n.mean()]),
             np.array([[1.0] * 4, [1, 1, 0, 0], [0.25] * 4])),
    "differences": (np.diff, np.diff(np.eye(4), axis=0)),
    "convolution": (lambda n: np.convolve(n, [1.0, -0.5])[:3],
                    np.eye(3, 4) - 0.5 * np.eye(3, 4, -1)),
    "solved": (lambda n: np.linalg.solve(np.eye(4) + np.eye(4, k=-1), n)[:3],
               np.linalg.inv(np.eye(4) + np.eye(4, k=-1))[:3]),
    "joined": (lambda n: np.concatenate([n[:1], np.cumsum(n)[1:3]]),
               np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]])),
    "appended by name": (lambda n: np.append(n[:1], values=n[2:]), np.eye(4)[[0, 2, 3]]),
    "stacked": (lambda n: np.stack([n[:3], n[1:]], 1)[:, 1], np.eye(4)[1:]),
}  # fmt: skip
MOVES = np.array([1.0, -0.5, 2.0]), np.array([0.0, 0.0, 1e-3])


def expected_mu(matrix, moved):
    """sqrt(d' S^+ d) for the covariance S, infinite where d is outside of its range."""
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    along = vectors.T @ moved
    held = values > 1e-12 * values.max()
    if np.abs(along[~held]).max(initial=0.0) > 1e-9 * np.abs(along).max():
        return math.inf
    return float(np.sqrt(np.sum(along[held] ** 2 / values[held])))


def linear_violation(moves=1):
    """Where the cost of a linear map of noise is not that of its covariance; "" nowhere.

    Of so many moves, by turns the one or the other first.
    """
    if found := one_sided_violation():
        return found
    for k, (name, (function, matrix)) in enumerate(LINEAR.items()):
        for moved in (MOVES[k % 2], MOVES[1 - k % 2])[:moves]:
            mu = expected_mu(4.0 * matrix, moved)
            exact = Tight().epsilon(GaussianLoss(mu), DELTA) if mu < math.inf else mu
            found = record(
                lambda x, rng, f=function: x + f(rng.normal(scale=4.0, size=4)),
                np.zeros(3), moved, delta=DELTA,
            )  # fmt: skip
            if found.cost is None or not math.isclose(found.cost, exact, rel_tol=1e-6):
                return f"{name}: cost {found.cost}, and not {exact:.6g}"
    return ""


def one_sided_violation():
    """Where noise in one direction is taken for Laplace noise, or Laplace noise is not known."""
    laplace = Tight().epsilon(LaplaceLoss(1.0), DELTA)
    for name, function, exact in (
        ("log", lambda a, rng: a.sum() + np.log(rng.random()), math.inf),
        ("two logs", lambda a, rng: a.sum() + sum(np.log(rng.random(2))), math.inf),
        ("log and sign", lambda a, rng: a.sum() + rng.choice([-1, 1]) * np.log(rng.random()),
         laplace),
    ):  # fmt: skip
        found = record(function, DATA, NEIGHBOUR, delta=DELTA)
        if found.cost is None or not math.isclose(found.cost, exact, rel_tol=1e-6):
            return f"{name}: cost {found.cost}, and not {exact:.6g}"
    return ""


@pytest.mark.parametrize("moves", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_linear_maps_of_gaussian_noise_cost_what_their_covariance_says(moves):
    assert linear_violation(moves) == ""


COINS = PairLoss((0.5, 0.5), (0.25, 0.75))
# Draws by a private law, with the loss from 0 to 1.  numpy takes the last probability of a
# multinomial law for what the others leave.
BY_A_PRIVATE_LAW = {
    "counts by row": (lambda rng, x: rng.multinomial([1, 2], [[0.5 + x / 4, 0.5 - x / 4]] * 2),
                      3 * COINS),
    "last probability": (lambda rng, x: rng.multinomial(2, [0.5 + x / 4, 0.1]), 2 * COINS),
    "heads": (lambda rng, x: rng.binomial([[1], [2]], [0.5 + x / 4, 0.5], size=(2, 2)), 3 * COINS),
    "others": (lambda rng, x: rng.choice(3, 2, False, [0.99, 0.005 + x / 400, 0.005 - x / 400]),
               2 * BoundedRangeLoss(math.log(3.0))),
    "new candidate": (lambda rng, x: rng.choice(3, 2, False, [0.5, 0.5 - x / 4, x / 4]), None),
    "flat noise": (lambda rng, x: rng.multivariate_normal([x, x], np.ones((2, 2))),
                   GaussianLoss(1.0)),
    "beside flat noise": (lambda rng, x: rng.multivariate_normal([x, 0], np.ones((2, 2))), None),
}  # fmt: skip


def law_violation():
    """Where the cost of draws by a private law is not that of their loss; "" nowhere."""
    for name, (function, loss) in BY_A_PRIVATE_LAW.items():
        exact = math.inf if loss is None else Tight().epsilon(loss, DELTA)
        cost = record(lambda x, rng, f=function: f(rng, x), 0.0, 1.0, delta=DELTA).cost
        if cost is None or not math.isclose(cost, exact, rel_tol=1e-6):
            return f"{name}: cost {cost}, and not {exact:.6g}"
    return ""


def test_draws_by_a_private_law_cost_what_their_loss_says():
    assert law_violation() == ""


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, laws: rng.multinomial(2, laws),
        lambda rng, laws: rng.binomial(2, laws[:-1]),
        lambda rng, laws: rng.multivariate_normal(laws, np.eye(len(laws))),
    ],
)
def test_a_private_number_of_probabilities_is_a_finding(draw):
    found = record(lambda x, rng: draw(rng, np.full(int(x), 1 / x)), 3.0, 4.0)
    assert [finding.kind for finding in found.findings] == ["input"]


VIOLATIONS = {
    "recorded noise": violation,
    "recorded linear maps": linear_violation,
    "recorded laws": law_violation,
}


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
def test_costs_do_not_depend_on_the_unit(unit):
    def sums(x, rng):
        return unit * (x + np.cumsum(rng.laplace(size=3))), unit * rng.normal(size=3).sum()

    found = record(sums, np.zeros(3), np.ones(3), delta=DELTA)
    assert found.cost == pytest.approx(Tight().epsilon(LaplaceLoss(1.0), DELTA), rel=1e-6)


def test_a_matrix_mechanism_of_many_steps_is_followed():
    steps = 200
    prefix = np.tril(np.ones((steps, steps)))
    encoder = linalg.sqrtm(prefix).real
    decoder = prefix @ np.linalg.inv(encoder)

    def released(x, rng):
        return prefix @ x + decoder @ rng.normal(scale=3.0, size=steps)

    found = record(released, np.zeros(steps), np.eye(steps)[5], delta=DELTA)
    mu = float(np.linalg.norm(encoder[:, 5])) / 3.0
    assert found.cost == pytest.approx(Tight().epsilon(GaussianLoss(mu), DELTA), rel=1e-6)


# --- the examples of the issue, and what is near them


@pytest.mark.parametrize("name", ["clip", "rint", "sin"])
def test_noise_of_an_unknown_law_is_inconclusive(name):
    found = record(lambda a, rng: a.sum() + OF_AN_ARRAY[name](rng.normal(size=2)), DATA, NEIGHBOUR)
    assert (found.outcome, found.sound, found.cost) == (Outcome.INCONCLUSIVE, False, None)
    assert found.unchecked[0].startswith(f"the law of the noise of {name}")
    assert "INCONCLUSIVE: nothing found in 1 draw; the cost of this pair is not known" in str(found)
    rows = json.loads(found.to_json())
    assert (rows["outcome"], rows["cost"], rows["cost_is_known"]) == ("INCONCLUSIVE", None, False)


@pytest.mark.parametrize("small", [SMALL * np.eye(2), np.full(2, SMALL)], ids=["matrix", "vector"])
def test_a_small_map_of_noise_hides_nothing(small):
    found = record(
        lambda a, rng: a.sum() + small @ rng.normal(size=2), DATA, NEIGHBOUR, claim=(1.0, DELTA)
    )
    assert (found.outcome, found.findings[0].kind) == (Outcome.FALSIFIED, "cost")
    assert found.cost > 1e9


@pytest.mark.parametrize(
    "finish", [lambda x: np.clip(x, 0, 10), np.rint, np.sin, lambda x: MATRIX @ x, str]
)
def test_what_is_made_of_an_answer_is_free(finish):
    found = record(lambda a, rng: finish(a[:3] + rng.normal(size=3)), DATA, NEIGHBOUR, delta=DELTA)
    assert found.sound
    assert found.cost == pytest.approx(Tight().epsilon(GaussianLoss(1.0), DELTA), rel=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, rng: np.rint(np.sum(rng.normal(size=3), initial=a.sum())),
        lambda a, rng: np.rint(float(a.sum()) + rng.random()),
        lambda a, rng: np.clip(rng.normal(size=3), -1, a_max=a.sum()),
        lambda a, rng: np.diag(a[:3]) @ rng.normal(size=3),
        lambda a, rng: np.einsum("i,i", a[:3], rng.normal(size=3)),
    ],
)
def test_private_numbers_inside_of_noise_are_found(function):
    found = record(function, DATA, NEIGHBOUR, delta=DELTA)
    assert "input" in {finding.kind for finding in found.findings}
    assert found.cost in {None, math.inf}


@pytest.mark.parametrize("pick", [lambda n: np.array(sorted(n)), min, lambda n: max(0.0, *n)])
def test_gaussian_noise_that_was_compared_is_not_taken_for_reused(pick):
    found = record(
        lambda a, rng: a.sum() + pick(rng.normal(scale=50, size=3)), DATA, NEIGHBOUR,
        delta=DELTA,
    )  # fmt: skip
    assert (found.outcome, found.cost, found.findings) == (Outcome.INCONCLUSIVE, None, ())
    assert "the loss of Gaussian noise compared" in found.unchecked[0]


@pytest.mark.parametrize(
    "take",
    [lambda n: float(n[0]), lambda n: float(2 * n[1]), lambda n: np.array(n[0]), np.asarray],
    ids=["float", "float of a product", "array of a number", "array"],
)
def test_noise_that_is_read_alone_is_lost_and_convicts_nobody(take):
    found = record(
        lambda a, rng: float(a.sum()) + take(rng.laplace(scale=50, size=2)), DATA, NEIGHBOUR, (), 1
    )
    if found.outcome is not Outcome.SURVIVED:  # an array of an array is still in sight
        assert [finding.kind for finding in found.findings] == ["lost noise"]
        assert (found.outcome, found.cost) == (Outcome.INCONCLUSIVE, None)


def test_without_a_claim_an_infinite_cost_does_not_survive():
    found = record(lambda a, rng: a.sum() + rng.normal(), DATA, NEIGHBOUR)
    assert (found.delta, found.cost) == (DELTA, Tight().epsilon(GaussianLoss(1.0), DELTA))
    found = record(lambda a, rng: a.sum() + rng.normal(), DATA, NEIGHBOUR, delta=0.0)
    assert (found.outcome, found.sound, found.cost) == (Outcome.INCONCLUSIVE, False, math.inf)
    assert "the cost at a delta above 0" in found.unchecked[0]


def test_what_follows_an_exception_is_not_known():
    found = record(lambda a, rng: 1 / 0, DATA, NEIGHBOUR)
    assert (found.outcome, found.cost) == (Outcome.INCONCLUSIVE, None)


SCALARS = {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize(
    ("function", "data", "neighbour"),
    [
        (lambda d, rng: d["a"] + rng.normal(), SCALARS, {"a": 2.0, "b": 2.0}),
        (lambda d, rng: {k: v + rng.normal() for k, v in d.items()}, SCALARS,
         {"a": 2.0, "b": 2.0}),
        (lambda d, rng: sum(d.values()) + rng.normal(), {**SCALARS, "c": 0.0, "d": 1.0},
         {"b": 2.0, "c": 0.0, "d": 1.0}),
        (lambda d, rng: {1: sum(map(sum, d.values())) + rng.normal()}, {"a": [1.0], "b": [2.0]},
         {"a": [2.0], "b": [2.0]}),
        (lambda d, rng: len(d) + rng.normal(), {1, 2, 3}, {1, 2}),
    ],
    ids=["scalar", "dict of answers", "one less", "lists", "set"],
)  # fmt: skip
def test_dicts_and_sets_are_data(function, data, neighbour):
    found = record(function, data, neighbour, delta=DELTA)
    assert found.sound, found
    assert found.cost == pytest.approx(Tight().epsilon(GaussianLoss(1.0), DELTA), rel=1e-6)


def test_equal_names_of_a_dict_are_told_apart():
    found = record(lambda d, rng: {1: d["a"], "1": d["b"]}, SCALARS, {"a": 2.0, "b": 2.0})
    assert [finding.kind for finding in found.findings] == ["result"]
