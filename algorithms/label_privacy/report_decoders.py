"""Decoders of randomised labels: coefficients, and the variance they add.

A decoder maps a report to one coefficient for every label: in expectation 1 for the true label
and 0 for the others.  Gradients weighted by them are unbiased, and V bounds their mean square, in
squares of the Lipschitz constant; the excess risk grows with sqrt(V).

References: "Convex Optimization with Local Label Differential Privacy", Appendices A and B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from accountant.numerics import Array
from algorithms.base.non_private import NoPrivacy
from algorithms.label_privacy.gradient_span import GradientSpan, smallest_ball_centre
from mechanisms.families.frequency_oracle import FrequencyOracle
from mechanisms.hemisphere import HemisphereL2
from mechanisms.unary_encoding import UnaryEncoding


class ReportDecoder(ABC):
    """A mechanism, and how the server decodes its reports."""

    mechanism: Any

    @abstractmethod
    def coefficients(self, reports: Any) -> Array:
        """Return K coefficients for every report, one for each label."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """V: the largest ``E |estimate|^2`` when no gradient is longer than 1."""

    @abstractmethod
    def second_moments(self, gram: Array) -> Array:
        """Return ``E |estimate|^2`` for every true label, exactly, given all ``<g_j, g_k>``."""


@final
@dataclass(frozen=True)
class SupportSetDecoder(ReportDecoder):
    """Reports that support some labels: unary encoding, subset selection, k-ary response.

    ``c_k = (1[k supported] - q) / (p - q)``.  Those of unary encoding do not always sum to 1.  With
    ``centred`` each coefficient is reduced by a fraction, ``tau / K``, of the excess of the sum:
    this costs no privacy and keeps estimates unbiased.
    """

    mechanism: FrequencyOracle
    centred: bool = False

    def coefficients(self, reports: ArrayLike) -> Array:
        """Return K coefficients for every report, one for each label."""
        weights: Array = self.mechanism.coefficients(reports)
        if self.centring_weight:
            excess = weights.sum(axis=1, keepdims=True) - 1
            weights -= excess * (self.centring_weight / self.mechanism.k)
        return weights

    @property
    def centring_weight(self) -> float:
        """tau: 0 where coefficients always sum to 1."""
        # The estimate is tau m + sum_k c_k (g_k - tau m), with m the mean of all gradients.  If
        # labels are as likely as theta says, sum_k P(k) g_k = 0 for the logistic loss; c_k has
        # variance v, but v + 1 for the true label: the least mean square is at K v / (K v + 1).
        if not (self.centred and isinstance(self.mechanism, UnaryEncoding)):
            return 0.0
        weight = self.mechanism.k * self.mechanism.coefficient_variances[1]
        return weight / (1 + weight)

    @property
    def second_moment(self) -> float:
        """V: ``2 + 4 K e^eps / (e^eps - 1)^2`` in unary encoding; centred, for regular losses."""
        k, (true_variance, wrong_variance) = self.mechanism.k, self.mechanism.coefficient_variances
        if isinstance(self.mechanism, UnaryEncoding):
            # centred, with g_k = p - e_k for shares p and L^2 = 2, the mean square is at most
            # v (K + K |p|^2 - 2) + 2 |g_y|^2 + 2 tau (p_y - |p|^2) <= 2 K v + 4 = L^2 V
            return 1 + true_variance + (k - 1) * wrong_variance
        # |sum_k c_k g_k|^2 on average, at its worst: g_y = u, and the others' sum is -t u
        cross = -self._cross_covariance
        t = min(k - 1.0, true_variance / ((k - 1) * cross)) if cross > 0 else k - 1.0
        total = 1 + true_variance + (k - 1) * (wrong_variance + cross)
        return total + 2 * true_variance * t / (k - 1) - cross * t * t

    @property
    def _cross_covariance(self) -> float:
        """Covariance of two wrong labels' coefficients; with the true one's: -own / (K-1)."""
        k, (true_variance, wrong_variance) = self.mechanism.k, self.mechanism.coefficient_variances
        return min(0.0, -(wrong_variance - true_variance / (k - 1)) / (k - 2)) if k > 2 else 0.0

    def covariance(self, label: int) -> Array:
        """Return the covariance matrix of the coefficients, given the true label."""
        k, (true_variance, wrong_variance) = self.mechanism.k, self.mechanism.coefficient_variances
        if isinstance(self.mechanism, UnaryEncoding):
            shift = np.eye(k) - self.centring_weight / k
            matrix: Array = (
                shift
                @ np.diag(np.where(np.arange(k) == label, true_variance, wrong_variance))
                @ shift.T
            )
            return matrix
        matrix = np.full((k, k), self._cross_covariance)
        np.fill_diagonal(matrix, wrong_variance)
        matrix[label], matrix[:, label] = -true_variance / (k - 1), -true_variance / (k - 1)
        matrix[label, label] = true_variance
        return matrix

    def second_moments(self, gram: Array) -> Array:
        """Return ``|g_y|^2 + sum_jk Cov(c_j, c_k) <g_j, g_k>``."""
        spread = [np.vdot(self.covariance(y), gram) + gram[y, y] for y in range(len(gram))]
        return np.array(spread)


@final
@dataclass(frozen=True)
class RotatedGradientDecoder(ReportDecoder):
    """Duchi, Jordan & Wainwright's report of the gradient itself around a public centre."""

    mechanism: HemisphereL2

    def coefficients(self, reports: Any) -> Array:
        """Return coefficients of reports on the regular simplex; see also `GradientSpan`."""
        return GradientSpan.regular_simplex(self.mechanism.dimension + 1).coefficients(
            np.asarray(reports)
        )

    @property
    def second_moment(self) -> float:
        """V: ``B^2 + 1 / (1 + B^2)``, or ``B^2`` for two labels; B is a report's length."""
        # E|estimate|^2 = 2 <c, g> - |c|^2 + r^2 B^2 <= 2 s - s^2 + (1 - s^2) B^2, s = |c|: the
        # smallest ball around points of the unit ball has r^2 + |c|^2 <= 1
        square = self.mechanism.length**2
        return square if self.mechanism.dimension == 1 else square + 1 / (1 + square)

    def second_moments(self, gram: Array) -> Array:
        """Return ``|c|^2 + 2 <c, g - c> + r^2 B^2 rank / (K - 1)``, as only the span counts."""
        weights = smallest_ball_centre(gram[None])[0]
        to_centre = gram @ weights
        square = float(weights @ to_centre)
        radius = float((np.diag(gram) - 2 * to_centre).max()) + square
        inner = gram - to_centre[:, None] - to_centre + square
        values = np.linalg.eigvalsh(inner)
        rank = np.count_nonzero(values > 1e-12 * max(values.sum(), 0.0))
        report = self.mechanism.length**2 * rank / self.mechanism.dimension
        moments: Array = 2 * to_centre - square + max(radius, 0.0) * report
        return moments


@final
@dataclass(frozen=True)
class IdentityDecoder(ReportDecoder):
    """No randomiser: labels as they are, for comparison only."""

    classes: int
    mechanism: NoPrivacy

    def coefficients(self, reports: ArrayLike) -> Array:
        """Return 1 for the label itself and 0 for the others."""
        indicators: Array = np.eye(self.classes)[np.asarray(reports)]
        return indicators

    @property
    def second_moment(self) -> float:
        """V: 1."""
        return 1.0

    def second_moments(self, gram: Array) -> Array:
        """Return each gradient's squared norm."""
        return np.diag(gram).copy()


def decoder_of(mechanism: Any, classes: int, regular: bool = False) -> ReportDecoder:
    """Return the decoder of this mechanism's reports, for ``regular`` losses or any."""
    if isinstance(mechanism, HemisphereL2):
        return RotatedGradientDecoder(mechanism)
    if isinstance(mechanism, NoPrivacy):
        return IdentityDecoder(classes, mechanism)
    return SupportSetDecoder(mechanism, centred=regular)
