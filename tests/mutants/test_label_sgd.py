"""Wrong ways to train on private labels, each caught by a named law."""

import itertools
import math

import numpy as np
import pytest

from accountant import Budget
from accountant.errors import BudgetExceeded
from algorithms.label_privacy import label_sgd
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_randomizers import randomizer_of
from algorithms.label_privacy.label_sgd import LabelSGD
from algorithms.label_privacy.report_decoders import RotatedGradientDecoder, SupportSetDecoder
from audits import privacy_losses, replay

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = RNG.integers(0, 4, 40)
OTHER = Y.copy()
OTHER[0] = (Y[0] + 1) % 4
SETTINGS = {"epsilon": 1.0, "classes": 4, "diameter": 5.0, "batch_size": 5, "randomizer": "unary"}


class TwiceTheEpsilon(LabelSGD):
    """Randomises as for twice the epsilon."""

    def plan(self, shape):
        return LabelSGD(**(SETTINGS | {"epsilon": 2 * self.epsilon})).plan(shape)


class ReadsLabelsPastTheGate(LabelSGD):
    """Starts from the labels' mean, past the gate."""

    def run(self, ledger):
        return super().run(ledger) + 1e-12 * float(np.mean(ledger._data))


class TwoReportsPerUser(LabelSGD):
    """Averages two reports of every user."""

    def run(self, ledger):
        ledger.release_each(ledger.plan.parts[0], label_sgd._label_query, np.arange(40))
        return super().run(ledger)


class UsersOrderedByLabel(LabelSGD):
    """Takes the users in the order of their labels."""

    def run(self, ledger):
        order = np.argsort(np.asarray(ledger._data), kind="stable")
        ledger.release_each(ledger.plan.parts[0], label_sgd._label_query, order[:20])
        return np.zeros(3)


class SpanOfTrueLabelOnly(LabelSGD):
    """Sends gradients whose span is that of the true label alone."""

    def run(self, ledger):
        def own(labels):
            span = GradientSpan.regular_simplex(self.classes)
            return span.label_corners(labels) * (1 + labels[:, None])

        ledger.release_each(ledger.plan.parts[0], own)
        return 1e-9 * np.asarray(ledger._data, dtype=float)


def test_noise_for_twice_the_epsilon_is_over_budget_and_seen_in_the_losses():
    mutant, honest = TwiceTheEpsilon(**SETTINGS), LabelSGD(**SETTINGS)
    with pytest.raises(BudgetExceeded):
        Budget(1.0).check(mutant.plan(X.shape))
    assert Budget(1.0).check(honest.plan(X.shape)) <= 1.0
    greatest = [
        np.abs(privacy_losses(one, Y, OTHER, 40, public=X, rng=1)).max() for one in (mutant, honest)
    ]
    assert greatest[0] > 1.5 > 1.0 + 1e-9 >= greatest[1]


@pytest.mark.parametrize(
    ("mutant", "verdict"),
    [
        (ReadsLabelsPastTheGate, "leak_free"),
        (TwoReportsPerUser, "on_plan"),
        (UsersOrderedByLabel, "on_plan"),
    ],
)
def test_replay_convicts(mutant, verdict):
    assert not getattr(replay(mutant(**SETTINGS), Y, OTHER, public=X, rng=1), verdict)
    assert getattr(replay(LabelSGD(**SETTINGS), Y, OTHER, public=X, rng=1), verdict)


def test_replay_convicts_vectors_that_show_the_label():
    settings = SETTINGS | {"randomizer": "duchi"}
    assert not replay(SpanOfTrueLabelOnly(**settings), Y, OTHER, public=X, rng=1).leak_free
    assert replay(LabelSGD(**settings), Y, OTHER, public=X, rng=1).leak_free


def bias(analyser):
    """How far the mean coefficients are from the label, over all reports of unary encoding."""
    reports = np.array(list(itertools.product((0, 1), repeat=4)))
    masses = np.exp(analyser.mechanism.log_density(reports, np.full(16, 2), each=True))
    return np.abs(masses @ analyser.coefficients(reports) - np.eye(4)[2]).max()


class OffsetForgotten(SupportSetDecoder):
    """Divides by p - q and forgets q."""

    def coefficients(self, reports):
        mechanism = self.mechanism
        return mechanism.supported_labels(reports) / (
            mechanism.own_label_probability - mechanism.other_label_probability
        )


class DecodesAsRappor(SupportSetDecoder):
    """Decodes as if both bits were flipped alike."""

    def coefficients(self, reports):
        q = 1 / (1 + math.exp(0.5))
        return (self.mechanism.supported_labels(reports) - q) / (1 - 2 * q)


@pytest.mark.parametrize("mutant", [OffsetForgotten, DecodesAsRappor])
def test_unbiasedness_convicts(mutant):
    mechanism = randomizer_of("unary", 4, 1.0)
    assert bias(mutant(mechanism)) > 0.1
    assert bias(SupportSetDecoder(mechanism)) < 1e-12
    assert bias(SupportSetDecoder(mechanism, centred=True)) < 1e-12


def test_the_formula_convicts_a_second_moment_that_lost_its_four():
    # E15's cousin: K e^eps / (e^eps - 1)^2 without the 4 of a fair coin
    mechanism, gradients = randomizer_of("unary", 4, 1.0), np.eye(4)
    exact = SupportSetDecoder(mechanism).second_moments(gradients @ gradients.T).max()
    lost = 2 + 4 * math.e / (math.e - 1) ** 2
    assert lost < 0.5 * exact
    assert exact <= SupportSetDecoder(mechanism).second_moment * (1 + 1e-12)


def test_unbiasedness_convicts_a_span_without_its_centre():
    mechanism = randomizer_of("duchi", 4, 1.0)
    span = GradientSpan.regular_simplex(4)
    reports = mechanism.release(span.label_corners(np.full(200_000, 1)), 1)
    right = RotatedGradientDecoder(mechanism).coefficients(reports)
    wrong = reports @ span.inverse_map[0].T
    # Hoeffding: each coefficient is at most 6 in size, so .06 has a chance below 1e-6 (x 4)
    assert np.abs(right).max() < 6
    assert np.abs(right.mean(axis=0) - np.eye(4)[1]).max() < 0.08
    assert np.abs(wrong.mean(axis=0) - np.eye(4)[1]).max() > 0.15
