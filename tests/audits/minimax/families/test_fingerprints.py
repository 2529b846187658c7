"""Fingerprinting: the lemma, the arcsine identity, the code, the ridge, the scaled Lemma 3.3."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, kstest

from accountant import ParameterError
from audits.minimax.families.bernoulli_products import BernoulliProducts
from audits.minimax.families.fingerprints import (
    Fingerprints,
    agreement,
    append_ridge,
    append_ridge_twice,
    hadamard,
    tracing_scores,
)
from tests.audits.minimax.families.fingerprinting_lemma import (
    column_score,
    column_score_by_quadrature,
    fingerprinting_sum,
    least_fingerprinting_sum,
)

ANSWERS = {
    "mean": lambda m: m,
    "zero": lambda m: 0 * m,
    "sign": np.sign,
    "half": lambda m: m / 2,
    "tanh": lambda m: np.tanh(3 * m),
    "against": lambda m: -m,
}
every_answer = pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)


@every_answer
@pytest.mark.parametrize("n", [1, 3, 8, 20, 101])
def test_no_answer_escapes_the_lemma(answer, n):
    assert fingerprinting_sum(answer, n) >= least_fingerprinting_sum(n) - 1e-12 > 1 / 3 - 1e-12


@pytest.mark.parametrize("n", [1, 2, 3, 8, 20, 1000])
def test_the_least_is_attained(n):
    assert fingerprinting_sum(lambda m: 2 * m / (n + 2), n) == pytest.approx(
        least_fingerprinting_sum(n), rel=1e-12
    )


@every_answer
@pytest.mark.parametrize("n", [1, 3, 4])
def test_the_sum_by_all_columns_and_quadrature(answer, n):
    """Another road: all 2^n columns, and the integral over the mean."""
    total = 0.0
    for column in itertools.product((-1.0, 1.0), repeat=n):
        x = np.array(column)
        f = float(answer(np.array(x.mean())))

        def inside(mu, x=x, f=f):
            chance = np.prod((1 + mu * x) / 2) / 2
            return chance * (f * (x - mu).sum() + (f - x.mean()) ** 2)

        total += quad(inside, -1, 1)[0]
    assert fingerprinting_sum(answer, n) == pytest.approx(total, rel=1e-9)


def test_the_printed_minimum_of_the_reference():
    # methods.md 8: minimum .367 over its answers and n of 3, 8, 20
    least = min(fingerprinting_sum(f, n) for f in list(ANSWERS.values())[:5] for n in (3, 8, 20))
    assert least == pytest.approx(0.367, abs=1e-3)


@every_answer
@pytest.mark.parametrize("n", [1, 3, 24])
def test_the_arcsine_identity_by_quadrature(answer, n):
    assert column_score(answer, n) == pytest.approx(
        column_score_by_quadrature(answer, n), rel=1e-9, abs=1e-12
    )


def test_whoever_follows_unanimous_columns_scores():
    # g(+-1) = +-1 at full reach: 2 / pi
    assert column_score(np.sign, 25, reach=0.5) == pytest.approx(2 / math.pi)
    assert column_score(lambda m: 0 * m, 25) == 0.0


@pytest.mark.parametrize("law", ["uniform", "arcsine"])
def test_means_and_columns_have_their_laws(law):
    family, rng = BernoulliProducts(20_000, law), np.random.default_rng(1)
    means = family.means(rng)
    if law == "uniform":
        assert kstest(means, "uniform", (-1, 2)).pvalue > 1e-6
    else:
        assert kstest(np.arcsin(means) / math.pi, "uniform", (-0.45, 0.9)).pvalue > 1e-6
    rows = family.sample(means, 50, rng)
    assert set(np.unique(rows)) == {-1.0, 1.0}
    # the mean over all of x - mu: deviation below 1 / sqrt(20000 * 50), 5.5 of them 4e-8
    assert abs((rows - means).mean()) < 5.5 / math.sqrt(rows.size)


@pytest.mark.parametrize("order", [2, 8, 64])
def test_the_ridge_is_orthogonal(order):
    matrix = hadamard(order)
    assert (matrix @ matrix.T == order * np.eye(order)).all()
    assert (np.abs(matrix) == 1).all()


def test_a_data_set_is_the_code_without_a_row_beside_the_ridge():
    family = Fingerprints(rows=5, features=16, seed=3)
    x, y = family.sample(2, 21, np.random.default_rng(0))
    assert x.shape == (21, 16)
    assert y.sum() == 5
    members = {tuple(row) for row in x[y == 1]}
    assert members == {tuple(row) for row in np.delete(family.code, 2, axis=0)}
    ridge = x[y == 0]
    assert (ridge.T @ ridge == 16 * np.eye(16)).all()
    with pytest.raises(ParameterError, match="rows \\+ features = 21"):
        family.sample(2, 20, np.random.default_rng(0))


def test_the_minimiser_betrays_who_is_missing():
    right, scores = 0, []
    for seed in range(40):
        family = Fingerprints(rows=24, features=512, seed=seed)
        which = seed % 25
        x = np.delete(family.code, which, axis=0)
        # of sum (<x, theta> - 1)^2 + 512 |theta|^2, by the push-through identity
        theta = x.T @ np.linalg.solve(x @ x.T + 512 * np.eye(24), np.ones(24))
        right += family.decode(theta) == which
        scores.append(tracing_scores(theta, x, family.means).mean())
    # a decoder that knows nothing is right in 12 of 40 with probability below 1e-6
    assert binom.sf(11, 40, 1 / 25) < 1e-6
    assert right >= 12
    # methods.md 7.4 has 1.82 at p = 2048; scores grow as sqrt p
    assert np.mean(scores) == pytest.approx(0.91, abs=0.1)


def test_separation_is_certified_and_parameters_are_of_length_one():
    family = Fingerprints(rows=6, features=64, seed=1)
    centres = [family.parameter(which) for which in range(7)]
    gaps = [np.abs(a - b).sum() for a, b in itertools.combinations(centres, 2)]
    assert family.separation == pytest.approx(min(gaps))
    assert family.points == 7
    assert all(np.abs(centre).sum() <= 1 + 1e-12 for centre in centres)


def test_the_scaled_lemma():
    # methods.md 7.4: (a, b, nu) and the least w = 1 / tau
    for a, b, split, w in ((1.1, 0.75, 0.001, 322), (1.1, 0.55, 0.01, 80), (1.05, 0.51, 0.001, 19)):
        assert agreement(a, split, 1 / w) >= b - 2e-3
        assert agreement(a, split, 1 / (0.9 * w)) < b
    # the paper's own numbers
    assert agreement(1.1, 0.001, 0.001) >= 0.75
    # and where most columns are split, nothing follows
    assert agreement(1.1, 0.7, 1 / 24) == 0.0


def test_the_certificate_says_what_holds():
    certificate = Fingerprints(rows=24, features=256, seed=0).certify()
    assert certificate.orthogonal
    assert certificate.tau == pytest.approx(1 / 24)
    # P(25 rows agree) under arcsine means, by quadrature
    inside = quad(lambda u: ((1 + math.sin(u)) / 2) ** 25 * 2, -0.45 * math.pi, 0.45 * math.pi)[0]
    expected = inside / (0.9 * math.pi)
    spread = 5.5 * math.sqrt(expected * (1 - expected) / 256)  # 4e-8
    assert abs(certificate.unanimous - expected) < spread
    assert certificate.agreement == 0.0


def test_scores_of_strangers_are_standardised():
    family, rng = BernoulliProducts(512), np.random.default_rng(2)
    means = family.means(rng)
    theta = np.where(rng.random(512) < 0.5, rng.normal(size=512), 0.0)
    scores = tracing_scores(theta, family.sample(means, 4000, rng), means)
    assert abs(scores.mean()) < 5.5 / math.sqrt(4000)
    assert scores.var() == pytest.approx(1, abs=6 * math.sqrt(2 / 4000))
    assert (tracing_scores(np.zeros(512), family.sample(means, 3, rng), means) == 0).all()


@pytest.mark.parametrize("features", [0, 3, 100, True, 2**15])
def test_features_must_be_a_power_of_two(features):
    with pytest.raises(ParameterError, match="features"):
        append_ridge(np.ones((2, features if features is not True else 3)))
    with pytest.raises(ParameterError, match="features"):
        Fingerprints(features=features)


def test_a_ridge_for_labels_pulls_every_direction_back():
    x, y = append_ridge_twice(*append_ridge(np.ones((3, 8))))
    assert x.shape == (3 + 2 * 8, 8)
    assert (x[y == 1].sum(axis=0) - x[y == -1].sum(axis=0) == 3).all()
