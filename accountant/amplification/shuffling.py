"""Shuffling: local reports are put in random order before the analyst sees them.

Each of ``users`` users randomises an own record by a local randomiser of epsilon e0.  The hockey
stick at epsilon is the supremum of P(A) - e^epsilon Q(A) over events A, where P and Q are the laws
of what is seen for two records of one user.

*Clones* (Feldman, McMillan & Talwar 2022, Theorem 3.2).  Some of the other users answer as if they
had this user's record or its replacement.  It stays hidden which of these reports is the user's.
Let f = 1 / (e^e0 + 1).  Of the other users C ~ Bin(users - 1, 2f) answer with a fair coin, A of
them heads, and D ~ Bernoulli(1 - f):

    P = law of (A + D, C - A + 1 - D),    Q = law of (A + 1 - D, C - A + D).

This pair costs at least as much as what the analyst sees.

*Binary responses*: each answer is flipped with probability f, and the number of yes is seen.

Bounds are rounded up.  Proof and round-off: `docs/proofs/shuffling.md`.

References: Feldman, McMillan & Talwar (2022), Theorem 3.2 (the clone pair, computed numerically
here); (2021), Theorem 3.1 (a closed form, 2 to 4 times looser).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.losses.finite_pair import OWN_ROUNDING, PairLoss
from accountant.losses.loss import Loss, SymmetricLoss, epsilons
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.rounding import ACCURACY, MAX_EXPONENT, ULP
from accountant.numerics.search import falling_root
from accountant.plans.adjacency import Adjacency
from accountant.plans.plan import Item, Plan, as_plan

USERS = IntegerRange(1, 10**9)
# Up to this number of users binary responses are exact: every number of yes among the others is
# tried, which takes about a second.
MAX_ENUMERATED_USERS = 1000
# Up to this number of users the attained pair is listed, with an outcome for each number of yes;
# beyond it the attained pair has two equal laws, so that lower bounds are 0.
MAX_LISTED_USERS = 5000
# A composition replaces this loss by one with finitely many values.  The profile takes milliseconds
# at each of them, so 512 are taken, fewer than usual.
NUMERICS = LossNumerics(is_upper_envelope=True, discretisation_points=512)
# Windows of a binomial law, in standard deviations: beyond them lie at most about 1e-21, 1e-44,
# 1e-97 and 1e-300.  A wider one is taken where what the last one misses is more than 1e-12 of a
# hockey stick (a "stick").
DEVIATIONS = (9.5, 14.0, 21.0, 45.0)
NEGLIGIBLE = 1e-12
# Numbers of clones are taken in blocks of 32: the first of a block has its chance from a logarithm,
# and every other one from the chance before it, which is quicker; round-off grows along a block.
BLOCK = 32
CACHE_SIZE = 2**17  # most entries of a matrix of epsilons by numbers of clones: 1 MB
TINY = 1e-250  # It is added to a bound: underflow takes away less than this.


@final
@dataclass(frozen=True, slots=True)
class Shuffled(SymmetricLoss):
    """Reports of ``users`` users by the same pure local randomiser, in random order.

    Stated for replacing one user's record; not interactive. Binary responses of up to 1,000 users
    (a mechanism about two values, or a `PairLoss` of two outcomes) are exact: the adversary sees
    how many said yes, and the other users' answers are those that reveal most. Any other part hides
    among clones. With e0 the epsilon of one report and f = 1 / (e^e0 + 1),

        P = law of (A + D, C - A + 1 - D),    Q = law of (A + 1 - D, C - A + D),

    where C ~ Bin(users - 1, 2f) is the number of clones, A ~ Bin(C, 1/2) that of the clones which
    answer as for the user's record, and D ~ Bernoulli(1 - f) whether the user does.

    Parameters
    ----------
    part : Plan
        The local randomiser; one pure release.
    users : int
        Number of reports, at least 1.

    References
    ----------
    Feldman, McMillan & Talwar (2022), Theorem 3.2.

    Examples
    --------
    >>> from accountant import PureLoss, Shuffled, Tight
    >>> round(Tight().epsilon(Shuffled(PureLoss(1.0), users=1000), delta=1e-6), 2) < 0.4
    True
    """

    part: Plan
    users: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", USERS.check("users", self.users))
        as_plan(self.part)
        if self.part.relation not in (None, Adjacency.LOCAL_REPLACE, Adjacency.REPLACE_ONE):
            reason = f"randomised by each user, not stated for {self.part.relation!r} neighbours"
            raise ParameterError("part", self.part, reason)
        if not math.isfinite(self.loss.pure):
            raise ParameterError("part", self.part, "pure: shuffling hides bounded losses only")

    @property
    def loss(self) -> Loss:
        """The local loss of one report."""
        return loss_of_plan(self.part)

    @property
    def relation(self) -> Adjacency:
        """Replace-one: the record of one user is replaced."""
        return Adjacency.REPLACE_ONE

    def losses(self) -> Iterator[tuple[Item, int]]:
        """Yield this loss, once."""
        yield self, 1

    @property
    def binary(self) -> bool:
        """Whether a user answers yes or no to one question: the number of yes is all that is seen.

        The loss is then a pair of two outcomes whose probabilities are exchanged on the neighbour.
        Reports about more than two values, such as directions of vectors, may have the same loss.
        But there the other users may hold values between the two, and no proof says that the number
        of yes reveals as much.  So a mechanism must say that it is about two values; a pair of laws
        that stands for the part itself is about these two.
        """
        loss = self.loss
        if self.part is not loss and not getattr(self.part, "is_about_two_values", False):
            return False
        return isinstance(loss, PairLoss) and len(loss.p) == 2 and loss.p == loss.q[::-1]

    def profile(self, epsilon: ArrayLike) -> Array:
        """Return the hockey stick of the clone pair, or of the number of yes."""
        e = epsilons(epsilon)
        flat = np.ravel(e)
        if self.binary and self.users <= MAX_ENUMERATED_USERS:
            delta = binary_hockey_sticks(self.max_loss, self.users, flat)
        else:
            delta = clone_hockey_sticks(self.max_loss, self.users, flat)
        return np.where(flat < self.max_loss, delta, 0.0).reshape(e.shape)

    def profile_any_epsilon(self, epsilon: Array) -> Array:
        """Return the privacy profile at any real epsilon, computed once for e and -e."""
        size, places = np.unique(np.abs(epsilon), return_inverse=True)
        values = self.profile(size)
        # The loss is symmetric, so that delta(-e) = 1 - e^-e + e^-e delta(e).
        negative = -np.expm1(-size) + np.exp(-size) * values
        places = places.reshape(np.shape(epsilon))
        return np.where(np.asarray(epsilon) >= 0, values[places], negative[places])

    @property
    def infinity(self) -> float:
        """0: every outcome is possible on both neighbours."""
        return 0.0

    @property
    def max_loss(self) -> float:
        """The largest loss of the local randomiser: there may be no other user."""
        return self.loss.pure

    @property
    def numerics(self) -> LossNumerics:
        """An upper envelope: no single pair need attain the profile at all epsilons.

        It depends on epsilon which answers of the other users reveal most.  So lower bounds come
        from `attained_pair` instead.
        """
        return NUMERICS

    @property
    def attained_pair(self) -> Loss:
        """Binary responses of the same epsilon, all others having the same answer.

        The lower ends of certificates are taken from it: a part of this epsilon may cost so much.
        """
        # From `MAX_EXPONENT` on, floats hold the chance of a flipped answer inexactly, or as 0.
        if self.users > MAX_LISTED_USERS or self.max_loss > MAX_EXPONENT:
            return PairLoss((1.0,), (1.0,))
        laws = [
            yes_count_distributions(self.max_loss, yes=yes, no=self.users - 1 - yes)
            for yes in (0, self.users - 1)
        ]
        # Logarithms of masses err by less than 8 ulps of their largest term, ln (users - 1)!, and
        # by as much again where masses, which are rounded up, are scaled to the sum 1.
        rounding = OWN_ROUNDING + 16 * ULP * math.lgamma(self.users)
        pairs = [PairLoss(p / p.sum(), q / q.sum()).with_rounding(rounding) for p, q in laws]
        # Either is attained.  The one that costs more at a usual delta gives the sharper lower end.
        return max(pairs, key=lambda pair: pair.inverse_profile(1e-6))

    def inverse_profile(self, delta: float) -> float:
        """Return the inverse of the profile by guarded secants: a profile costs milliseconds."""
        # The root is sought at a delta that is smaller by the accuracy which a profile promises.
        log_target = math.log(delta) - ACCURACY

        def excess(e: float) -> float:
            value = float(self.profile(e))
            return math.log(value) - log_target if value > 0 else -math.inf

        # The start and the slope of the first step only decide how long the search takes.
        root, _ = falling_root(excess, self.max_loss / 2, tilt=1.0, max_epsilon=self.max_loss)
        return min(root, self.max_loss)


def clone_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return the hockey sticks of the clone pair of ``users`` reports that are e0-private."""
    # The hockey stick is 0 from e0 on, the largest loss.  Where e^epsilon overflows, it is at most
    # 1, as everywhere.
    sticks = np.where((epsilon > MAX_EXPONENT) & (epsilon < e0), 1.0, 0.0)
    pending = np.flatnonzero((epsilon < e0) & (epsilon <= MAX_EXPONENT))
    for deviations in DEVIATIONS:
        clones, weight, missed = binomial_window(users - 1, 2 * flip_probability(e0), deviations)
        rows = max(1, CACHE_SIZE // clones.size)
        for start in range(0, pending.size, rows):
            batch = pending[start : start + rows]
            sticks[batch] = _sticks_of_clones(e0, epsilon[batch], clones, weight) + missed
        pending = pending[sticks[pending] < missed / NEGLIGIBLE]
    return sticks


def _sticks_of_clones(e0: float, epsilon: Array, clones: Array, weight: Array) -> Array:
    """Return the part of the hockey sticks where the number of clones C is one of ``clones``.

    ``weight`` is the mass of each number of clones.  With d = 1 - f, and i heads and j tails among
    the C clones and the user, i + j = C + 1, the ratio P / Q is (d i + f j) / (f i + d j).  That is
    above e^eps where i > m = floor((C + 1) share), and there P - e^eps Q sums to

        alpha P(A >= m) - beta P(A > m) = alpha P(A = m) - (e^eps - 1) P(A > m),

    alpha = d - e^eps f, beta = e^eps d - f, share = beta / (alpha + beta).  The chances P(A > m) of
    all C come from that of the largest C by differences, see the comments.
    """
    d = 1 - flip_probability(e0)
    # f = d e^-e0: in this form nothing cancels near e0.
    alpha = -d * np.expm1(epsilon - e0)
    beta = -d * np.exp(epsilon) * np.expm1(-epsilon - e0)
    share = beta / (alpha + beta)
    # The numbers of clones fall from the largest one.  The last block is filled up with zeros of
    # weight 0.
    size = -(-clones.size // BLOCK) * BLOCK
    coins = np.maximum(clones[-1] - np.arange(float(size)), 0.0)
    weights = np.append(weight[::-1], np.zeros(size - weight.size))
    heads = np.minimum(np.floor(np.multiply.outer(share, coins + 1)), coins)
    equal, mass_ulps = _fair_masses(coins, heads)
    # From c coins to c - 1, P(A > m) falls by P(A_c = m) (c - m) / c where m stays, and rises by as
    # much where m falls by one.
    change = equal[:, :-1] * (coins - heads)[:, :-1] / np.maximum(coins[:-1], 1.0)
    rises = change * (heads[:, :-1] > heads[:, 1:])
    # A change moves P(A > m) of all smaller numbers: their weights are summed.
    tail_weights = np.cumsum(weights[::-1])[::-1]
    top = equal[:, 0] * _more_heads(coins[0], heads[:, 0]) * tail_weights[0]
    changed, risen = ordered_dot(change, tail_weights[1:]), ordered_dot(rises, tail_weights[1:])
    total, factor = ordered_dot(equal, weights), np.expm1(epsilon)
    value = alpha * total - factor * (top + (2 * risen - changed))
    # The error in ulps, counted in the proof under "Round-off": that of the masses and their sums;
    # 12 sqrt(C) of the tail of the largest C; and 8 of each mass for round-off in a share where
    # (C + 1) share is nearly whole, which may move m by one.
    error = (mass_ulps + size) * (alpha * total + factor * (top + changed))
    error += 12 * math.sqrt(coins[0]) * factor * top
    error += 8 * (alpha + beta) * ordered_dot(equal * (heads < coins), weights)
    stick_upper: Array = np.maximum(value, 0.0) * (1 + ACCURACY) + ULP * error + TINY
    return stick_upper


def _fair_masses(coins: Array, heads: Array) -> tuple[Array, Array]:
    """Return P(Bin(c, 1/2) = m), and bounds on the relative errors of each row, in ulps.

    Along the last axis the coins c fall by one and the heads m by none or one.  From the chance of
    m heads of c coins, that of m heads of c - 1 follows by the factor 2 (c - m) / c, and that of
    m - 1 heads of c - 1 by 2 m / c.  So chances are products along a block, whose first chance is
    computed by its logarithm.  By the proof each chance is exact to 256 + 12 |ln P| ulps.
    """
    ratio = np.empty(heads.shape)
    falls = heads[:, :-1] > heads[:, 1:]
    half = 2 / np.maximum(coins[:-1], 1.0)
    ratio[:, 1:] = np.where(falls, heads[:, :-1], (coins - heads)[:, :-1]) * half
    log_mass = _log_fair_mass(coins[::BLOCK], heads[:, ::BLOCK])
    ratio[:, ::BLOCK] = np.exp(log_mass)
    blocks = ratio.reshape(heads.shape[0], -1, BLOCK)
    np.cumprod(blocks, axis=-1, out=blocks)
    return blocks.reshape(heads.shape), 256 - 12 * np.min(log_mass, axis=1)


def _more_heads(coins: float, heads: Array) -> Array:
    """Return P(A > m) / P(A = m) of c fair coins, rounded down, which raises the stick.

    It is the sum over n of the products of (c - m - i) / (m + 1 + i), i = 0 ... n.  As m >= c / 2,
    the products fall at least as e^{-n^2 / c}: after 6 sqrt(c) factors they are below e^-36, and
    the sum ends.
    """
    i = np.arange(math.ceil(6 * math.sqrt(coins)) + 1.0)
    terms = np.maximum(coins - heads[:, None] - i, 0.0) / (heads[:, None] + 1 + i)
    chance_ratio: Array = np.cumprod(terms, axis=-1, out=terms).sum(axis=-1)
    return chance_ratio


def _log_fair_mass(coins: Array, heads: Array) -> Array:
    """Return ``ln P(Bin(c, 1/2) = m)`` by Loader's formula (2000), without cancellation.

    With s = 2 m / c - 1 and R(n) = ln n! - n ln n + n, it is
    R(c) - R(m) - R(c - m) - (c / 2) ((1 + s) ln(1 + s) + (1 - s) ln(1 - s)).
    """
    from scipy.special import xlogy

    s = (2 * heads - coins) / np.maximum(coins, 1.0)
    # For small s the formula is written so that terms of the size of s do not cancel.  For large s
    # it takes 1 + s and 1 - s from the whole numbers: the round-off of s would be large in 1 - s.
    small = np.clip(s, -0.5, 0.5)
    near = np.log1p(-small * small) + small * (np.log1p(small) - np.log1p(-small))
    more, less = 2 * heads / np.maximum(coins, 1.0), 2 * (coins - heads) / np.maximum(coins, 1.0)
    nats = np.where(np.abs(s) <= 0.5, near, xlogy(more, more) + xlogy(less, less))
    rests: Array = _stirling_rest(coins) - _stirling_rest(heads) - _stirling_rest(coins - heads)
    return rests - coins / 2 * nats


def _stirling_rest(n: Array) -> Array:
    """Return ``R(n) = ln n! - n ln n + n``.

    From 16 on by Stirling's series, whose first term left out is at most 1 / (1188 16^9), 55 ulps.
    """
    from scipy.special import gammaln, xlogy

    large = np.maximum(n, 16.0)
    square = 1 / (large * large)
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / large
    small = np.minimum(n, 16.0)
    small_rest = gammaln(small + 1) - xlogy(small, small) + small
    return np.where(n < 16, small_rest, np.log(2 * math.pi * large) / 2 + series)


def binary_hockey_sticks(e0: float, users: int, epsilon: Array) -> Array:
    """Return hockey sticks of the number of yes, for the other users' worst answers.

    How many of the others say yes in the worst case depends on epsilon, so all numbers are tried.
    """
    greatest, ratio = np.zeros(epsilon.shape), np.exp(np.minimum(epsilon, MAX_EXPONENT))
    # A chance is a sum of at most ``users`` masses, and each mass one of as many products.
    error = 2 * ULP * (8 + users)
    for log_ratio, above_p, above_q in _tails_by_yes_count(e0, users):
        # The number of yes of the others, a sum of independent answers, has a log-concave law.  So
        # P / Q grows with the number of yes, and the stick is a difference of two tails.
        threshold = np.searchsorted(log_ratio, epsilon, side="right")
        stick = above_p[threshold] * (1 + error) - ratio * above_q[threshold] * (1 - error)
        np.maximum(greatest, stick, out=greatest)
    return greatest * (1 + ACCURACY)


@functools.lru_cache(maxsize=4)
def _tails_by_yes_count(e0: float, users: int) -> list[tuple[Array, Array, Array]]:
    """Return three arrays by the number k of yes seen: ln(P / Q), and P and Q of at least k.

    The list has such a triple for each number of other users whose answer is yes before it is
    flipped.
    """
    tails = []
    for yes in range(users):
        p, q = yes_count_distributions(e0, yes, users - 1 - yes)
        possible = (p > 0) & (q > 0)
        p, q = p[possible], q[possible]
        above = [np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, q)]
        tails.append((np.log(p) - np.log(q), above[0], above[1]))
    return tails


def yes_count_distributions(e0: float, yes: int, no: int) -> tuple[Array, Array]:
    """Return the laws of the number of yes seen where the user says yes (P), or no (Q).

    ``yes`` and ``no``: how many of the other users say either, before answers are flipped.
    """
    unflipped, flipped = (
        binomial_window(n, c, DEVIATIONS[-1])[1]
        for n, c in ((yes, 1 - flip_probability(e0)), (no, flip_probability(e0)))
    )
    others = np.convolve(unflipped, flipped)
    with_yes, with_no = np.append(0.0, others), np.append(others, 0.0)
    p = (1 - flip_probability(e0)) * with_yes + flip_probability(e0) * with_no
    q = flip_probability(e0) * with_yes + (1 - flip_probability(e0)) * with_no
    return p, q


def flip_probability(e0: float) -> float:
    """Return the chance that a binary response is not the user's answer."""
    return math.exp(-e0) / (1 + math.exp(-e0))


@functools.lru_cache(maxsize=8)
def binomial_window(n: int, chance: float, deviations: float) -> tuple[Array, Array, float]:
    """Return values of Bin(n, chance) near its mean, their masses, and the mass of the rest."""
    from scipy.special import bdtr, bdtrc, gammaln  # bdtr(k, n, p): P(Bin <= k); bdtrc: P(Bin > k)

    if chance in (0.0, 1.0):  # It may be rounded to one of these.
        return np.full(1, n * chance), np.ones(1), 0.0
    centre = n * chance
    # By Bernstein's inequality the square is added for skew laws of a small mean.
    reach = deviations * math.sqrt(n * chance * (1 - chance)) + deviations**2 / 2
    low, high = max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach))
    k = np.arange(low, high + 1.0)
    log_mass = gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1)
    log_mass += k * math.log(chance) + (n - k) * math.log1p(-chance)
    missed = bdtr(low - 1, n, chance) if low > 0 else 0.0
    missed += bdtrc(high, n, chance) if high < n else 0.0
    mass = np.exp(log_mass)
    # The logarithms are inexact by ulps of their largest term, ln n!: masses are rounded up.  Those
    # of the window are raised to the sum 1, which is their sum but for what is missed.
    mass *= (1 + 16 * ULP * float(gammaln(n + 1.0))) / mass.sum()
    k.flags.writeable = mass.flags.writeable = False  # The cache returns them again.
    return k, mass, float(missed)
