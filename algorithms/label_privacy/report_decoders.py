"""Decoders of randomised labels: unbiased coefficients of gradients, and their second moment V.

There are K labels, of which y is the true one, and g_k is the gradient of the loss if the label is
k; the server knows all g_k.  A decoder maps a report to coefficients c_1, ..., c_K with E c_y = 1
and E c_k = 0 for the others, so that ``estimate = sum_k c_k g_k`` is unbiased: its mean is g_y.
Its second moment follows from the covariances of the coefficients,

    E |estimate|^2 = |g_y|^2 + sum_jk Cov(c_j, c_k) <g_j, g_k>.

V is the largest such moment over all y and all gradients no longer than 1; the excess risk grows
with sqrt(V).

For a *regular* loss the gradients are ``(s - e_k) x`` for shares s, at least 0 and of sum 1, the
k-th unit vector e_k and a row x, as for the logistic loss: so they are the corners of a regular
simplex.

References: "Convex Optimization with Local Label Differential Privacy", Appendix A (labels that a
report supports) and Appendix B (Duchi's report of a vector).
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

    A report supports the true label with probability p, and each other label with probability q:
    ``c_k = (1[k supported] - q) / (p - q)``.  The coefficients of subset selection and of k-ary
    response sum to 1 in every report.  Those of unary encoding are independent, and sum to 1 on
    average only.  With ``centred`` each of them is reduced by a fraction, ``tau / K``, of the
    excess of the sum over 1: this costs no privacy and keeps estimates unbiased.

    The covariances below hold for these three mechanisms, and not for every `FrequencyOracle`.
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
        # With m the mean of all g_k and h_k = g_k - tau m, the estimate of the reduced coefficients
        # is tau m + sum_k c_k h_k.  The bits of unary encoding are independent, and p = 1/2, as
        # `UnaryEncoding.optimised` has it, gives c_k the variance v for a wrong label and v + 1 for
        # the true one.  So for the label y
        #     E |estimate|^2 = |g_y|^2 + v sum_k |h_k|^2 + |h_y|^2.
        # Any tau keeps estimates unbiased.  Let P be the probabilities of labels that the model
        # predicts; for the logistic loss sum_k P(k) g_k = 0.  If y has the law P, the mean of the
        # moment depends on tau by |m|^2 (tau^2 - v K (2 tau - tau^2)), which is least at
        # tau = K v / (K v + 1).
        if not (self.centred and isinstance(self.mechanism, UnaryEncoding)):
            return 0.0
        _, wrong_variance = self.mechanism.coefficient_variances
        ratio = self.mechanism.k * wrong_variance
        return ratio / (1 + ratio)

    @property
    def second_moment(self) -> float:
        """V, which is ``2 + 4 K e^eps / (e^eps - 1)^2`` for unary encoding.

        With ``centred`` it holds for regular losses.
        """
        k, (true_variance, wrong_variance) = self.mechanism.k, self.mechanism.coefficient_variances
        if isinstance(self.mechanism, UnaryEncoding):
            # Independent c_k give |g_y|^2 (1 + v_true) + v_wrong sum_(k != y) |g_k|^2, which is the
            # result for gradients of length 1.  Centred, take gradients g_k = s - e_k of a row of
            # length 1, v and tau as above.  Then sum_k |g_k|^2 = K - 2 + K |s|^2, and
            # <g_y, m> = |s|^2 - s_y, so E |estimate|^2 is at most
            #     v (K - 2 + K |s|^2) + 2 |g_y|^2 + 2 tau (s_y - |s|^2) <= 2 (2 + K v) = 2 V.
            # The longest possible s - e_k has the squared length 2, and V is for the length 1.
            return 1 + true_variance + (k - 1) * wrong_variance
        # Let S be the sum of the other labels' gradients, and cov <= 0 the covariance of their
        # coefficients.  Then E |estimate|^2 is
        #     (1 + v_true) |g_y|^2 - 2 v_true <g_y, S> / (K - 1)
        #     + (v_wrong - cov) sum_(k != y) |g_k|^2 + cov |S|^2.
        # It is convex in every g_k, so it is largest for gradients of length 1, with S = -t g_y for
        # the t <= K - 1 that maximises 2 v_true t / (K - 1) + cov t^2.
        cov = self._wrong_covariance
        t = min(k - 1.0, true_variance / ((k - 1) * -cov)) if cov < 0 else k - 1.0
        total = 1 + true_variance + (k - 1) * (wrong_variance - cov)
        return total + 2 * true_variance * t / (k - 1) + cov * t * t

    @property
    def _wrong_covariance(self) -> float:
        """Covariance of the coefficients of two wrong labels, where all coefficients sum to 1.

        Then each coefficient has the covariance 0 with the sum of all.  For the true label's this
        says that its covariance with a wrong one is -v_true / (K - 1); for a wrong one it gives the
        result, v_wrong - v_true / (K - 1) + (K - 2) covariance = 0.
        """
        k, (true_variance, wrong_variance) = self.mechanism.k, self.mechanism.coefficient_variances
        if k == 2:  # there is one wrong label
            return 0.0
        # It is never positive but by round-off.
        return min(0.0, -(wrong_variance - true_variance / (k - 1)) / (k - 2))

    def covariance(self, label: int) -> Array:
        """Return the covariance matrix of the coefficients, given the true label."""
        k, (true_variance, wrong_variance) = self.mechanism.k, self.mechanism.coefficient_variances
        if isinstance(self.mechanism, UnaryEncoding):
            # The independent coefficients, each less tau / K of the sum of all.
            centring = np.eye(k) - self.centring_weight / k
            variances = np.where(np.arange(k) == label, true_variance, wrong_variance)
            matrix: Array = centring @ np.diag(variances) @ centring.T
            return matrix
        matrix = np.full((k, k), self._wrong_covariance)
        np.fill_diagonal(matrix, wrong_variance)
        matrix[label], matrix[:, label] = -true_variance / (k - 1), -true_variance / (k - 1)
        matrix[label, label] = true_variance
        return matrix

    def second_moments(self, gram: Array) -> Array:
        """Return ``|g_y|^2 + sum_jk Cov(c_j, c_k) <g_j, g_k>``."""
        moments = [gram[y, y] + np.vdot(self.covariance(y), gram) for y in range(len(gram))]
        return np.array(moments)


@final
@dataclass(frozen=True)
class RotatedGradientDecoder(ReportDecoder):
    """Duchi, Jordan & Wainwright's report of the gradient itself around a public centre.

    A user reports a vector Z of length B in the span of all ``g_k - c``, which has K - 1
    dimensions: c is the centre and r the radius of the smallest ball around all g_k, and the mean
    of Z is ``(g_y - c) / r``.  The estimate is ``c + r Z``.
    """

    mechanism: HemisphereL2

    def coefficients(self, reports: Any) -> Array:
        """Return coefficients of reports whose span is that of a regular simplex.

        For other gradients `GradientSpan.coefficients` decodes the reports in their own span.
        """
        return GradientSpan.regular_simplex(self.mechanism.dimension + 1).coefficients(
            np.asarray(reports)
        )

    @property
    def second_moment(self) -> float:
        """V: ``B^2 + 1 / (1 + B^2)``, or ``B^2`` for two labels; B is a report's length."""
        # E |c + r Z|^2 = |c|^2 + 2 <c, g_y - c> + r^2 B^2 is
        #     2 <c, g_y> - |c|^2 + r^2 B^2 <= 2 s - s^2 + (1 - s^2) B^2   with s = |c|,
        # as r^2 + |c|^2 <= 1 for points of the unit ball; its maximum is at s = 1 / (1 + B^2).  For
        # two labels c is their middle, so |g_y - c| = r, and the same expectation is
        # |g_y|^2 + r^2 (B^2 - 1) <= B^2.
        square = self.mechanism.length**2
        return square if self.mechanism.dimension == 1 else square + 1 / (1 + square)

    def second_moments(self, gram: Array) -> Array:
        """Return ``|c|^2 + 2 <c, g_y - c> + r^2 B^2 rank / (K - 1)`` for every true label y.

        A report has K - 1 coordinates, each of mean square B^2 / (K - 1).  If the gradients span
        fewer dimensions, the rank, the other coordinates have no part in the estimate.
        """
        weights = smallest_ball_centre(gram[None])[0]
        products_with_centre = gram @ weights  # <g_k, c>
        centre_square = float(weights @ products_with_centre)
        radius_square = float((np.diag(gram) - 2 * products_with_centre).max()) + centre_square
        # The matrix of <g_j - c, g_k - c>.  Its eigenvalues below 1e-12 of their sum are round-off.
        centred_gram = gram - products_with_centre[:, None] - products_with_centre + centre_square
        values = np.linalg.eigvalsh(centred_gram)
        rank = np.count_nonzero(values > 1e-12 * max(values.sum(), 0.0))
        report_square = self.mechanism.length**2 * rank / self.mechanism.dimension
        moments: Array = (
            2 * products_with_centre - centre_square + max(radius_square, 0.0) * report_square
        )
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
    """Return the decoder of this mechanism's reports, for a ``regular`` loss or for any loss.

    ``mechanism`` is one that `randomizer_of` returns, or `NoPrivacy`.
    """
    if isinstance(mechanism, HemisphereL2):
        return RotatedGradientDecoder(mechanism)
    if isinstance(mechanism, NoPrivacy):
        return IdentityDecoder(classes, mechanism)
    return SupportSetDecoder(mechanism, centred=regular)
