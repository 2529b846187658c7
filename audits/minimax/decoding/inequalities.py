"""From what reports tell to how often a decode is wrong: Fano's and Le Cam's inequalities.

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


@final
@dataclass(frozen=True, slots=True)
class DecodingErrorBound:
    """A lower bound on the chance of a wrong decode: ``sharp`` ours, ``published`` the paper's."""

    sharp: float
    published: float


def private_fano(family: SignedBasis, n: int, epsilon: float) -> DecodingErrorBound:
    """A decode of a uniform point from epsilon-LDP reports without interaction.

    Ours inverts ``kl(s || 1 / M) <= I``; the paper's is ``1 - (I + ln 2) / ln M`` of its I.
    """
    known = fano_information(family, n, epsilon)
    right = most_right_given_information(known.sharp, family.points)
    printed = 1 - (known.published + math.log(2)) / math.log(family.points)
    return DecodingErrorBound(1 - right, max(printed, 0.0))


def private_le_cam(family: SignedBasis, n: int, epsilon: float) -> DecodingErrorBound:
    """A test of theta = 0 against the mixture of all points, reports in turn: sum of both errors.

    ``1 - TV`` by Pinsker's inequality.  Our divergence bounds the mean over v, so the mixture's.
    """
    known = le_cam_divergence(family, n, epsilon)
    return DecodingErrorBound(
        *(max(1 - math.sqrt(nats / 2), 0.0) for nats in (known.sharp, known.published))
    )


def private_many_points(family: SignedBasis, n: int, epsilon: float) -> DecodingErrorBound:
    """A decode of a uniform point, reports in turn: ``kl(1 / M || s) <= mean KL(M_0 || M_v)``.

    Not in the papers, whose Theorem 2 tests two hypotheses: ``published`` is half of
    `DecodingErrorBound` there.
    """
    known = le_cam_divergence(family, n, epsilon)
    right = most_right_given_divergence(known.sharp, family.points)
    return DecodingErrorBound(1 - right, private_le_cam(family, n, epsilon).published / 2)
