"""Label-private convex optimisation: the four randomisers by enumeration, bounds, replay."""

import itertools
import math
import re

import numpy as np
import pytest
from scipy import sparse

from accountant import Budget, Chunks, ParameterError
from algorithms.base.non_private import NotPrivateWarning
from algorithms.base.row_blocks import squared_lengths
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_losses import LABEL_LOSSES, LabelLoss
from algorithms.label_privacy.label_randomizers import (
    RANDOMIZER_NAMES,
    best_randomizer,
    randomizer_of,
    second_moments,
)
from algorithms.label_privacy.label_sgd import LabelSGD
from algorithms.label_privacy.report_decoders import SupportSetDecoder, decoder_of
from audits import privacy_losses, replay

RNG = np.random.default_rng(5)


def outputs(name, mechanism):
    """All reports."""
    k = mechanism.k
    if name == "unary":
        return np.array(list(itertools.product((0, 1), repeat=k)))
    if name == "subset":
        return np.array(list(itertools.combinations(range(k), mechanism.size)))
    return np.arange(k)


def law(analyser, name, label):
    """(coefficients, probability) of every report of this label."""
    reports = outputs(name, analyser.mechanism)
    labels = np.full(len(reports), label)
    masses = np.exp(analyser.mechanism.log_density(reports, labels, each=True))
    return analyser.coefficients(reports), masses


def circle(points=4000):
    """Directions in the middle of equal arcs."""
    angles = (np.arange(points) + 0.5) * 2 * math.pi / points
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("classes", [2, 3, 5, 8])
@pytest.mark.parametrize("name", ["unary", "subset", "response"])
@pytest.mark.parametrize("centred", [False, True])
def test_coefficients_are_unbiased_and_their_square_is_the_formula(name, classes, epsilon, centred):
    analyser = SupportSetDecoder(randomizer_of(name, classes, epsilon), centred)
    gradients = RNG.normal(size=(classes, 4))
    moments = analyser.second_moments(gradients @ gradients.T)
    for label in range(classes):
        coefficients, masses = law(analyser, name, label)
        assert masses.sum() == pytest.approx(1.0, abs=1e-12)
        mean = masses @ coefficients
        assert mean == pytest.approx(np.eye(classes)[label], abs=1e-9 / epsilon**2)
        spread = (coefficients - mean).T @ ((coefficients - mean) * masses[:, None])
        assert spread == pytest.approx(analyser.covariance(label), rel=1e-9, abs=1e-9)
        squared = masses @ ((coefficients @ gradients) ** 2).sum(axis=1)
        assert moments[label] == pytest.approx(squared, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_vector_of_the_span_is_unbiased_by_quadrature(epsilon):
    mechanism, directions = randomizer_of("duchi", 3, epsilon), circle()
    reports = mechanism.length * directions
    for gradients in (RNG.normal(size=(3, 5)), np.ones((3, 1)), np.eye(3)[:, :2]):
        gram = gradients @ gradients.T
        span = GradientSpan.from_gram(gram[None])
        moments = decoder_of(mechanism, 3).second_moments(gram)
        for label in range(3):
            corner = span.label_corners(np.array([label]))
            assert np.linalg.norm(corner) <= 1 + 1e-12
            masses = np.exp(mechanism.log_density(reports[:, None], corner)) / len(reports)
            weights = (
                np.repeat(span.centre_weights, len(reports), 0),
                np.repeat(span.inverse_map, len(reports), 0),
            )
            all_users = GradientSpan(weights[0], span.corners, weights[1])
            estimates = all_users.coefficients(reports) @ gradients
            # the quadrature of a jump errs by one arc
            assert masses @ estimates == pytest.approx(gradients[label], abs=4e-3 / epsilon)
            squared = masses @ (estimates**2).sum(axis=1)
            assert moments[label] == pytest.approx(squared, rel=5e-3)


def test_golden_values():
    # methods.md 11 and the table of 5.2
    assert second_moments(10, 1.0)["unary"] == pytest.approx(38.826944, abs=5e-7)
    assert second_moments(100, 0.5)["unary"] == pytest.approx(1569.079236, abs=5e-6)
    mechanism = randomizer_of("subset", 10, 1.0)
    assert mechanism.size == 3
    assert mechanism.own_label_probability == pytest.approx(0.538102, abs=1e-6)
    assert mechanism.other_label_probability == pytest.approx(0.273544, abs=1e-6)
    for epsilon, expected in ((0.5, 1551.5), (1.0, 364.6), (3.0, 21.9), (4.6, 5.1)):
        assert second_moments(100, epsilon)["subset"] == pytest.approx(expected, rel=1e-2)
    orthonormal = np.eye(100)
    for epsilon, expected in ((0.5, 1536), (1.0, 361), (3.0, 21.6), (4.6, 4.0)):
        found = second_moments(100, epsilon, orthonormal)["subset"]
        assert found == pytest.approx(expected, rel=1e-2)
    assert second_moments(100, 1.0, orthonormal)["response"] == pytest.approx(3469, rel=1e-3)
    # 5.4: B^2 = 2579 and 189
    assert second_moments(100, 0.5)["duchi"] == pytest.approx(2579, rel=1e-3)
    assert second_moments(100, 3.0)["duchi"] == pytest.approx(189, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("classes", [2, 3, 6, 20])
def test_no_gradients_exceed_the_worst_case_and_some_attain_it(classes, epsilon):
    worst, seen = second_moments(classes, epsilon), dict.fromkeys(RANDOMIZER_NAMES, 0.0)
    made = {
        name: decoder_of(randomizer_of(name, classes, epsilon), classes)
        for name in RANDOMIZER_NAMES
    }
    for trial in range(120):
        # all but one on a regular simplex, whose middle is t away from 0 and ahead or behind
        t = (trial / 119) ** 3
        corners = np.eye(classes)[1:] - np.append(0.0, np.full(classes - 1, 1 / (classes - 1)))
        corners *= math.sqrt((1 - t * t) / max(1 - 1 / (classes - 1), 1e-12))
        corners[:, 0] = -t if classes > 2 else -1.0
        own = np.eye(classes)[:1] * (1.0 if trial % 2 else -1.0)
        gradients = (
            np.concatenate([own, corners]) if trial % 4 > 1 else RNG.normal(size=(classes, 2))
        )
        gradients /= np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1.0)
        for name in RANDOMIZER_NAMES:
            found = made[name].second_moments(gradients @ gradients.T).max()
            assert found <= worst[name] * (1 + 1e-3 * (name == "duchi")) + 1e-9
            seen[name] = max(seen[name], found)
    assert all(seen[name] > 0.97 * worst[name] for name in RANDOMIZER_NAMES)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", ["logistic", "linear"])
def test_centred_unary_encoding_stays_below_v_for_regular_losses(name, epsilon):
    loss = LABEL_LOSSES[name]
    assert loss.regular
    for classes in (2, 4, 10):
        analyser = decoder_of(randomizer_of("unary", classes, epsilon), classes, regular=True)
        plain = SupportSetDecoder(analyser.mechanism)
        assert plain.centring_weight == 0 < analyser.centring_weight
        greatest = 0.0
        for scale in (0.0, 0.3, 1.0, 3.0, 30.0):
            theta = scale * RNG.normal(size=(classes, 3))
            row = RNG.normal(size=(1, 3))
            gram = (
                loss.gram(theta, row)[0]
                / loss.lipschitz(math.sqrt(squared_lengths(row)[0]), classes) ** 2
            )
            found = analyser.second_moments(gram)
            greatest = max(greatest, found.max())
            # never worse on average over labels as likely as theta says
            shares = np.exp(-loss.values(row @ theta.T))[0]
            if name == "logistic":
                assert shares @ found <= shares @ plain.second_moments(gram) + 1e-9
        assert greatest <= analyser.second_moment * (1 + 1e-12)


def test_the_best_randomiser():
    assert best_randomizer(2, 1.0) == "response"
    assert best_randomizer(100, 1.0) == "subset"
    assert best_randomizer(100, 6.0) == "response"
    # labels that share one gradient need no noise at all in the span, and little of the others
    assert best_randomizer(5, 1.0, np.ones((5, 2))) in {"response", "subset", "duchi"}
    gradients = RNG.normal(size=(7, 10, 3))
    moments = second_moments(10, 0.5, gradients)
    assert best_randomizer(10, 0.5, gradients) == min(moments, key=moments.get)
    # in every unit of the gradients, and they are numbers
    for unit in (1e-200, 1e200):
        assert second_moments(10, 0.5, unit * gradients) == pytest.approx(moments, rel=1e-3)
    for wrong in ("abc", [[1.0], [2.0, 3.0]], np.ones((0, 10, 3)), [[1j]] * 10):
        with pytest.raises(ParameterError, match="one row for each of 10 labels"):
            best_randomizer(10, 0.5, wrong)
    # 5.2: subset selection is 1 to 17 % better than unary encoding, response far worse
    for epsilon in (0.5, 1.0, 3.0, 4.6):
        found = second_moments(100, epsilon)
        assert 1.0 < found["unary"] / found["subset"] < 1.25
    assert second_moments(100, 1.0)["response"] > 9 * second_moments(100, 1.0)["unary"]


@pytest.mark.parametrize("name", LABEL_LOSSES)
def test_gradients_are_those_of_the_loss(name):
    loss, classes, step = LABEL_LOSSES[name], 4, 1e-6
    theta, rows = RNG.normal(size=(classes, 3)), RNG.normal(size=(6, 3))
    gradients = loss.gradients(theta, rows)
    for index in np.ndindex(theta.shape):
        moved = np.zeros_like(theta)
        moved[index] = step
        values = [loss.values(rows @ (theta + sign * moved).T) for sign in (1, -1)]
        numeric = (values[0] - values[1]) / (2 * step)
        assert gradients[(slice(None), slice(None), *index)] == pytest.approx(numeric, abs=1e-6)
    lengths = np.sqrt((gradients.reshape(6, classes, -1) ** 2).sum(axis=2))
    bound = [loss.lipschitz(length, classes) for length in np.sqrt(squared_lengths(rows))]
    assert (lengths <= np.array(bound)[:, None] + 1e-12).all()
    coefficients = RNG.normal(size=(6, classes))
    total, square = loss.estimate(theta, rows, coefficients)
    generic, squared = LabelLoss.estimate(loss, theta, rows, coefficients)
    assert total == pytest.approx(generic)
    assert square == pytest.approx(squared)
    assert loss.gram(theta, rows) == pytest.approx(LabelLoss.gram(loss, theta, rows))
    thin = loss.estimate(theta, sparse.csr_array(rows), coefficients)
    assert thin[0] == pytest.approx(total)


@pytest.mark.parametrize("bad", [-1.0, 0.0, math.nan, "1"])
def test_a_lipschitz_constant_that_is_none_has_no_bound(bad):
    with pytest.raises(ParameterError, match="lipschitz"):
        LabelSGD(epsilon=1.0, k=2, diameter=1.0).utility_bound(10, bad)


def simulated(users, classes, features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(users, features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    true = 3 * np.random.default_rng(77).normal(size=(classes, features))
    return X, (X @ true.T + rng.gumbel(size=(users, classes))).argmax(axis=1), true


def logistic_risk(theta, X, true):
    shares = np.exp(-LABEL_LOSSES["logistic"].values(X @ true.T))
    return float((LABEL_LOSSES["logistic"].values(X @ theta.T) * shares).sum(axis=1).mean())


@pytest.mark.parametrize("name", RANDOMIZER_NAMES)
@pytest.mark.parametrize("batch_size", [1, 16])
def test_the_excess_risk_is_within_the_bound(name, batch_size):
    users, classes = 3000, 5
    excess, moments = [], []
    for seed in range(3):
        X, y, true = simulated(users, classes, 3, seed)
        made = LabelSGD(
            epsilon=1.0, k=classes, diameter=2 * np.linalg.norm(true), randomizer=name,
            batch=batch_size, random_state=seed,
        ).fit(X, y)  # fmt: skip
        fresh, _, _ = simulated(5000, classes, 3, 100)
        excess.append(logistic_risk(made.coef_, fresh, true) - logistic_risk(true, fresh, true))
        moments.append(made.second_moment_)
    bound = made.utility_bound(users, made.lipschitz_)
    # well below (methods.md 5.1), and the bound is not vacuously far
    assert 0 < np.mean(excess) < 0.6 * bound
    most = second_moments(classes, 1.0)[name]
    assert bound == pytest.approx(
        made.diameter * made.lipschitz_ * math.sqrt((most + batch_size - 1) / users)
    )
    assert 0.2 * most < np.mean(moments) < most


def test_error_falls_with_users_and_k_ary_response_pays_root_k():
    # K = 100, epsilon 1: the papers' sqrt K; V is 370 and 365 against 3505.  Rows of length 1, true
    # theta's rows of length 5.
    rng = np.random.default_rng(99)
    true = rng.normal(size=(100, 3))
    true *= 5 / np.linalg.norm(true, axis=1, keepdims=True)

    X, fresh = rng.normal(size=(200_000, 3)), rng.normal(size=(2000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fresh /= np.linalg.norm(fresh, axis=1, keepdims=True)
    y = (X @ true.T + rng.gumbel(size=(200_000, 100))).argmax(axis=1)

    def excess(name, users):
        made = LabelSGD(
            epsilon=1.0, k=100, diameter=2 * np.linalg.norm(true), randomizer=name,
            batch=128, random_state=0,
        ).fit(X[:users], y[:users])  # fmt: skip
        return logistic_risk(made.coef_, fresh, true) - logistic_risk(true, fresh, true)

    response, many = excess("response", 200_000), excess("unary", 200_000)
    assert many < 0.65 * excess("unary", 40_000)
    assert many <= 0.4 * response
    assert excess("auto", 200_000) <= 0.4 * response


SMALL_X, SMALL_Y, _ = simulated(40, 4, 3)


def small(name, loss="logistic", **others):
    settings = {"epsilon": 1.0, "k": 4, "diameter": 5.0, "batch": 4, "random_state": 0}
    return LabelSGD(**({"randomizer": name, "loss": loss} | settings | others))


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("name", RANDOMIZER_NAMES)
def test_replay_finds_no_leak_and_losses_within_epsilon(name, loss):
    other = SMALL_Y.copy()
    other[0] = (other[0] + 1) % 4
    found = replay(small(name, loss), SMALL_Y, other, public=SMALL_X, rng=1)
    assert found.leak_free
    assert found.on_plan
    assert found.deterministic
    losses = privacy_losses(small(name, loss), SMALL_Y, other, 40, public=SMALL_X, rng=2)
    assert 0.5 < np.abs(losses).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("loss", LABEL_LOSSES)
@pytest.mark.parametrize("name", RANDOMIZER_NAMES)
def test_the_first_step_of_equal_users_goes_along_their_gradient(name, loss):
    X, labels, users = np.tile([1.0, -0.5], (1600, 1)), np.full(1600, 2), 800
    made = small(name, loss, k=3, batch=users, epsilon=5.0).fit(X, labels)
    true = small("auto", loss, k=3, batch=users, epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        true.fit(X, labels)
    waits = (name, loss) == ("duchi", "hinge")  # its span moves with the coefficients
    assert len(made.transcript_) == (2 if waits else 1)
    assert sum(len(entry.output) for entry in made.transcript_) == 1600
    # the average of 0 and of the point of the first step, which is no longer than the radius
    first, true_first = 2 * made.coef_, 2 * true.coef_
    assert 0.8 < np.linalg.norm(true_first) / (made.diameter / 2) < 1 + 1e-12
    # a mean of estimates errs by about the root of their mean square over that of their number
    deviation = math.sqrt(made.second_moment_ / users)
    assert np.linalg.norm(first - true_first) < 4 * deviation * made.diameter / 2
    assert 4 * deviation < 0.25


@pytest.mark.parametrize("loss", LABEL_LOSSES)
@pytest.mark.parametrize("name", RANDOMIZER_NAMES)
def test_the_mean_square_of_estimates_is_that_of_the_gradients_at_hand(name, loss):
    X, users = np.tile([1.0, -0.5], (3000, 1)), 3000
    made = small(name, loss, k=5, batch=users, epsilon=2.0).fit(X, np.full(users, 2))
    kind = LABEL_LOSSES[loss]
    gram = kind.gram(np.zeros(kind.shape(2, 5)), X[:1])[0] / made.lipschitz_**2
    decoder = decoder_of(made.plan_.parts[0], 5, kind.regular)
    expected = decoder.second_moments(gram)[2]
    assert made.second_moment_ == pytest.approx(expected, rel=0.08)
    assert expected <= decoder.second_moment * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", RANDOMIZER_NAMES)
def test_plans_meet_their_budgets_and_waste_none(name, epsilon):
    plan = small(name, epsilon=epsilon).plan((1000, 3))
    assert (1 - 2e-6) * epsilon <= Budget(epsilon).check(plan) <= epsilon


def test_blocks_of_users_keep_to_the_plan_and_only_interactive_ones_are_batches():
    assert len(small("unary").plan((10**7, 3)).parts) == 39
    assert len(small("duchi").plan((1000, 3)).parts) == 1
    assert len(small("duchi", "hinge").plan((1000, 3)).parts) == 250
    many = small("unary", batch=1)
    assert len(many.fit(SMALL_X, SMALL_Y).transcript_) == 1


def test_same_seed_same_bits_and_labels_of_one_user_once():
    one, again = (small("auto").fit(SMALL_X, SMALL_Y) for _ in range(2))
    assert (one.coef_ == again.coef_).all()
    assert (one.coef_ != small("auto", random_state=1).fit(SMALL_X, SMALL_Y).coef_).any()
    who = np.concatenate([entry.who for entry in one.transcript_])
    assert sorted(who) == list(range(40))
    # more users than a step has: the last batch is short and the average is over all
    assert np.isfinite(small("unary", batch=7).fit(SMALL_X, SMALL_Y).coef_).all()


def test_one_pass_by_hand():
    # without noise: eta = D / (L sqrt n), the average of theta_1 .. theta_n, in the coins' order
    made = small("auto", epsilon=math.inf, non_private=True, batch=1, diameter=1.0)
    with pytest.warns(NotPrivateWarning, match="NOT private"):
        made.fit(SMALL_X, SMALL_Y)
    order = np.concatenate([entry.who for entry in made.transcript_])
    theta, total = np.zeros((4, 3)), np.zeros((4, 3))
    for user in order:
        total += theta / 40
        scores = np.exp(theta @ SMALL_X[user])
        gradient = np.outer(scores / scores.sum() - np.eye(4)[SMALL_Y[user]], SMALL_X[user])
        theta = theta - 1.0 / (made.lipschitz_ * math.sqrt(40)) * gradient
        theta *= min(1.0, 0.5 / np.linalg.norm(theta))
    assert made.coef_ == pytest.approx(total, abs=1e-12)
    assert "NOT PRIVATE" in made.summary()


def test_the_summary_says_the_second_moment_beside_v():
    words = small("unary", k=10).fit(SMALL_X, SMALL_Y).summary()
    assert words.startswith("LabelSGD: (1, 0)-differential privacy: one record's label")
    assert "at most V = 38.826944" in words
    moment = float(re.search(r"gradients ([0-9.]+) L\^2", words).group(1))
    assert 0 < moment < 38.83


def test_a_fit_without_privacy_says_so_whatever_is_set_afterwards():
    made = small("auto", epsilon=math.inf, non_private=True)
    with pytest.warns(NotPrivateWarning):
        made.fit(SMALL_X, SMALL_Y)
    assert "NOT PRIVATE" in made.set_params(epsilon=1.0, non_private=False).summary()


class Absolute(LabelLoss):
    """``|theta - y|``: the median, one coordinate."""

    def __init__(self, declared=1.0):
        self.declared = declared

    def shape(self, features, classes):
        return (1,)

    def lipschitz(self, length, classes):
        return self.declared

    def gradients(self, theta, X):
        signs = np.where(theta[0] > np.arange(5), 1.0, -1.0)
        return np.tile(signs[None, :, None], (X.shape[0], 1, 1))


@pytest.mark.parametrize("name", RANDOMIZER_NAMES)
def test_a_users_own_loss(name):
    labels = np.random.default_rng(0).choice(5, 20_000, p=[0.05, 0.05, 0.1, 0.7, 0.1])
    made = LabelSGD(
        epsilon=2.0, k=5, loss=Absolute(), diameter=10.0, randomizer=name, batch=20,
        random_state=0,
    ).fit(np.zeros((20_000, 1)), labels)  # fmt: skip
    assert made.coef_[0] == pytest.approx(3.0, abs=0.35)


BAD = [
    ({"k": 1}, "k must be"), ({"k": 4.0}, "k must be"),
    ({"epsilon": math.inf}, "epsilon must be finite"), ({"epsilon": math.nan}, "epsilon must be"),
    ({"epsilon": 0.0}, "epsilon must be"), ({"epsilon": True}, "epsilon must be"),
    ({"epsilon": 1.0, "non_private": True}, "epsilon must be infinity"),
    ({"diameter": -1.0}, "diameter must be"), ({"diameter": math.inf}, "diameter must be"),
    ({"loss": "square"}, "loss must be"), ({"randomizer": "best"}, "randomizer must be"),
    ({"batch": 0}, "batch must be"), ({"batch": 41}, "batch must be"),
    ({"random_state": "seed"}, "random_state must be"),
    ({"loss": Absolute(0.5)}, "of gradients at most 0.5 long"),
    ({"loss": Absolute(math.nan)}, "lipschitz must be"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "words"), BAD, ids=[str(one)[:30] for one, _ in BAD])
def test_bad_settings_are_refused_before_any_spend(settings, words):
    made = small("auto", **({"k": 5} | settings))
    with pytest.raises(ParameterError, match=words):
        made.fit(SMALL_X, SMALL_Y)
    assert not hasattr(made, "ledger_")


@pytest.mark.parametrize("bad", [4, -1, 1.5, np.nan, np.inf])
def test_a_label_of_no_class_counts_as_the_first(bad):
    labels, first = SMALL_Y.astype(float), SMALL_Y.copy()
    labels[7], first[7] = bad, 0
    found = [small("auto").set_params(random_state=0).fit(SMALL_X, y) for y in (labels, first)]
    assert found[0].coef_.tobytes() == found[1].coef_.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_rows_are_refused(bad):
    X, made = SMALL_X.copy(), small("auto")
    X[3, 1] = bad
    with pytest.raises(ParameterError):
        made.fit(X, SMALL_Y)
    assert not hasattr(made, "ledger_")


def test_sparse_rows_give_the_same_fit():
    dense, thin = (
        small("auto").fit(X, SMALL_Y).coef_ for X in (SMALL_X, sparse.csr_array(SMALL_X))
    )
    assert dense == pytest.approx(thin, abs=1e-12)


def test_bad_gradients_are_refused():
    with pytest.raises(ParameterError, match="one row for each of 3 labels"):
        best_randomizer(3, 1.0, np.ones((4, 2)))


def test_features_of_small_integers_have_their_lengths():
    x = np.full((40, 3), 200, dtype=np.uint8)
    LabelSGD(epsilon=1.0, k=2, diameter=1.0, random_state=0).fit(x, np.arange(40) % 2)
    pieces = Chunks(lambda: [(x, np.arange(40) % 2)], x.shape)
    LabelSGD(epsilon=1.0, k=2, diameter=1.0, random_state=0).fit(pieces)


@pytest.mark.parametrize(("classes", "rank"), [(3, 1), (5, 1), (5, 2), (6, 5)])
def test_duchis_moments_count_the_span_alone(classes, rank):
    rng = np.random.default_rng(classes)
    gradients = rng.normal(size=(classes, rank)) @ rng.normal(size=(rank, rank))
    gram = gradients @ gradients.T
    analyser = decoder_of(randomizer_of("duchi", classes, 1.0), classes)
    span, draws = GradientSpan.from_gram(gram[None]), 40_000
    for label in range(classes):
        corner = span.label_corners(np.array([label]))[0]
        reports = analyser.mechanism.release(corner, rng, size=draws)
        estimates = span.coefficients(reports)
        squares = np.einsum("ij,jk,ik->i", estimates, gram, estimates)
        # six standard errors: a false alarm of 2e-9 a label
        expected = analyser.second_moments(gram)[label]
        assert squares.mean() == pytest.approx(expected, abs=6 * squares.std() / math.sqrt(draws))


def test_gradients_along_one_line_are_best_told_by_duchi():
    line = np.linspace(-1, 1, 20)[:, None]
    assert best_randomizer(20, 1.0, line) == "duchi"
