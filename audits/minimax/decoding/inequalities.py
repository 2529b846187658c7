"""From the information in reports to the probability of a wrong decode: Fano and Le Cam.

Records come from one of M points of a hard family; to decode is to guess the point from the users'
private reports.

References: Duchi, Jordan & Wainwright (2018); Wang & Xu (2021), Lemmas 8 to 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.bernoulli_kl import (
    most_right_given_divergence,
    most_right_given_information,
)
from audits.minimax.information.contraction import fano_information, le_cam_divergence

ROUND_OFF = 1e-12  # by how much a sharp bound is lowered: more than the round-off of its formula


@final
@dataclass(frozen=True, slots=True)
class DecodingErrorBound:
    """A lower bound on the probability of a wrong decode: our own, and the published one."""

    sharp: float  # rounded down
    published: float  # the formula of the papers, not rounded


def private_fano(family: SignedBasis, n: int, epsilon: float) -> DecodingErrorBound:
    """Bound the probability of a wrong decode of a uniform point from reports made all at once.

    A decode is right with probability s at most.  For M points, ours is the largest s with
    ``kl(s || 1 / M) <= I``, for the information I of the reports about the point in nats; the
    paper's error is ``1 - (I + ln 2) / ln M``, of its own bound on I.

    Parameters
    ----------
    family : SignedBasis
        The hard family.
    n : int
        Number of users, each epsilon-LDP.
    epsilon : float
        0 to 300.

    Returns
    -------
    DecodingErrorBound
        Lower bounds; ``sharp`` is rounded down.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Duchi, Jordan & Wainwright (2018); Wang & Xu (2021), Lemma 8.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, private_fano
    >>> error = private_fano(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0)
    >>> round(error.sharp, 3), round(error.published, 3)
    (0.781, 0.461)
    """
    information = fano_information(family, n, epsilon)
    right = most_right_given_information(information.sharp, family.points)
    printed = 1 - (information.published + math.log(2)) / math.log(family.points)
    return DecodingErrorBound(sharp=_below(1 - right), published=max(printed, 0.0))


def private_le_cam(family: SignedBasis, n: int, epsilon: float) -> DecodingErrorBound:
    """Bound both errors of a test of theta = 0 against the mixture of all points, in sum.

    Users report one after another, each knowing the reports before.  The bound is ``1 - TV`` by
    Pinsker's inequality.

    Parameters
    ----------
    family : SignedBasis
        The hard family.
    n : int
        Number of users, each epsilon-LDP.
    epsilon : float
        0 to 300.

    Returns
    -------
    DecodingErrorBound
        Lower bounds on the sum of both error probabilities; ``sharp`` is rounded down.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Duchi, Jordan & Wainwright (2018); Wang & Xu (2021), Lemmas 9 to 11.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, private_le_cam
    >>> error = private_le_cam(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0)
    >>> round(error.sharp, 3), round(error.published, 3)
    (0.705, 0.321)
    """
    divergence = le_cam_divergence(family, n, epsilon)

    sharp, published = (
        1 - math.sqrt(nats / 2)  # TV <= sqrt(KL / 2)
        for nats in (divergence.sharp, divergence.published)
    )
    return DecodingErrorBound(sharp=_below(sharp), published=max(published, 0.0))


def _below(error: float) -> float:
    """Return a bound on an error probability, rounded down; at least 0."""
    return max(error - ROUND_OFF, 0.0)


def private_many_points(family: SignedBasis, n: int, epsilon: float) -> DecodingErrorBound:
    """Bound the probability of a wrong decode of a uniform point; users report one by one.

    Each user knows the reports before.  For M points, the probability s of a right decode is at
    most the largest one with ``kl(1 / M || s) <= mean KL(M_0 || M_v)``, the divergence from the
    reports at theta = 0 to those at the point v.  The papers test two hypotheses: ``published`` is
    half of the sum of both errors of `private_le_cam`.

    Parameters
    ----------
    family : SignedBasis
        The hard family.
    n : int
        Number of users, each epsilon-LDP.
    epsilon : float
        0 to 300.

    Returns
    -------
    DecodingErrorBound
        Lower bounds; ``sharp`` is rounded down.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Wang & Xu (2021), Theorem 2, for two hypotheses.  Proof: ``docs/proofs/decoding_records.md``.

    Examples
    --------
    >>> from audits.minimax import SignedBasis, private_many_points
    >>> error = private_many_points(SignedBasis(p=10, d=0.5), n=50, epsilon=1.0)
    >>> round(error.sharp, 3), round(error.published, 3)
    (0.722, 0.16)
    """
    divergence = le_cam_divergence(family, n, epsilon)
    right = most_right_given_divergence(divergence.sharp, family.points)
    published = private_le_cam(family, n, epsilon).published / 2
    return DecodingErrorBound(sharp=_below(1 - right), published=published)
