"""Wrong ways to train on private labels, and the runs and reports that convict them."""

import dataclasses
import math

import numpy as np

from algorithms.label_privacy import label_sgd
from algorithms.label_privacy.gradient_span import GradientSpan
from algorithms.label_privacy.label_randomizers import randomizer_of
from algorithms.label_privacy.label_sgd import LabelSGD
from algorithms.label_privacy.report_decoders import RotatedGradientDecoder, SupportSetDecoder
from tests.laws.algorithms import Run

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = RNG.integers(0, 4, 40)
OTHER = Y.copy()
OTHER[0] = (Y[0] + 1) % 4
SETTINGS = {"epsilon": 1.0, "k": 4, "diameter": 5.0, "batch": 5, "randomizer": "unary"}


class TwiceTheEpsilon(LabelSGD):
    """Randomises as for twice the epsilon."""

    def plan(self, shape):
        return LabelSGD(**(SETTINGS | {"epsilon": 2 * self.epsilon})).plan(shape)


class ReadsLabelsPastTheGate(LabelSGD):
    """Starts from the labels' mean, past the gate."""

    def _run_sgd(self, ledger, executor=None, start=None):
        found = super()._run_sgd(ledger, executor, start)
        leaked = 1e-12 * float(np.mean(ledger._data))
        return dataclasses.replace(found, total=found.total + leaked * found.steps)


class TwoReportsPerUser(LabelSGD):
    """Averages two reports of every user."""

    def _run_sgd(self, ledger, executor=None, start=None):
        ledger.release_each(ledger.plan.parts[0], label_sgd.label_query, np.arange(40))
        return super()._run_sgd(ledger, executor, start)


class UsersOrderedByLabel(LabelSGD):
    """Takes the users in the order of their labels."""

    def _run_sgd(self, ledger, executor=None, start=None):
        order = np.argsort(np.asarray(ledger._data), kind="stable")
        ledger.release_each(ledger.plan.parts[0], label_sgd.label_query, order[:20])
        return label_sgd.Descent(np.zeros(3), np.zeros(3), 1.0, lipschitz=1.0)


class SpanOfTrueLabelOnly(LabelSGD):
    """Sends gradients whose span is that of the true label alone."""

    def _run_sgd(self, ledger, executor=None, start=None):
        def own(labels):
            span = GradientSpan.regular_simplex(self.k)
            return span.label_corners(labels) * (1 + labels[:, None])

        ledger.release_each(ledger.plan.parts[0], own)
        leaked = 1e-9 * np.asarray(ledger._data, dtype=float)
        return label_sgd.Descent(leaked, leaked, 1.0, lipschitz=1.0)


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


def run_of(kind, **changed):
    """A run in which one label changes."""
    return Run(kind(**(SETTINGS | changed)), Y, OTHER, public=X, runs=40)


HONEST = run_of(LabelSGD)
LOSSES = {"TwiceTheEpsilon": (run_of(TwiceTheEpsilon), HONEST, "a loss of", 0.5)}
BUDGETS = {"TwiceTheEpsilon": (run_of(TwiceTheEpsilon), HONEST)}
LEAKS = {
    "ReadsLabelsPastTheGate": (run_of(ReadsLabelsPastTheGate), HONEST),
    "SpanOfTrueLabelOnly": (
        run_of(SpanOfTrueLabelOnly, randomizer="duchi"), run_of(LabelSGD, randomizer="duchi")
    ),
}  # fmt: skip
PLANS = {
    "TwoReportsPerUser": (run_of(TwoReportsPerUser), HONEST),
    "UsersOrderedByLabel": (run_of(UsersOrderedByLabel), HONEST),
}
UNARY = randomizer_of("unary", 4, 1.0)
DUCHI = randomizer_of("duchi", 4, 1.0)


def lost_second_moment():
    """E15's cousin: K e^eps / (e^eps - 1)^2 without the 4 of a fair coin."""
    return 2 + 4 * math.e / (math.e - 1) ** 2


class WithoutCentre(RotatedGradientDecoder):
    """Takes reports for gradients about their centre."""

    def coefficients(self, reports):
        return reports @ GradientSpan.regular_simplex(4).inverse_map[0].T
