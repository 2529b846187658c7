"""The largest probability of decoding a point of a family if only labels are private.

Features are public.  Given them a label is one of two values, and any (epsilon, delta)-private
report of one of two values can be simulated from this one: the value itself with probability
delta, else a randomised response of epsilon (Kairouz, Oh & Viswanath 2015).  See
docs/proofs/audits_by_coins.md.
"""

from __future__ import annotations

import math

from accountant.domains import DELTA
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, USERS


def most_right_of_labels(family: SignedBasis, n: int, epsilon: float, delta: float = 0.0) -> float:
    """The largest probability of decoding a uniform point from n private labels.

    Features are public.  Every user reports once, at once or one after another; rounded up.
    """
    information = label_information(family, n, epsilon, delta)
    return most_right_given_information(information, family.points)


def label_information(family: SignedBasis, n: int, epsilon: float, delta: float = 0.0) -> float:
    """``n [(1 - delta) g(lean tanh(eps / 2)) + delta g(lean)]`` nats.

    ``g(t) = [(1 + t) ln(1 + t) + (1 - t) ln(1 - t)] / 2`` is the divergence of Bernoulli((1 + t) /
    2) from a fair one; the label has t = lean, its response t = tanh(eps/2) lean.
    """
    n = USERS.check("n", n)
    epsilon, delta = LOCAL_EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)
    hidden = _entropy_deficit(min(1.0, family.lean * math.tanh(epsilon / 2)))
    return n * ((1 - delta) * hidden + delta * _entropy_deficit(family.lean))


def _entropy_deficit(t: float) -> float:
    return t * t * entropy_factor(t)
