"""Shuffling: local reports are put in random order before the analyst sees them.

Each user randomises an own record by a local randomiser of epsilon e0.  Some of the other users
answer as if they had this user's record or its replacement: they are the clones of this user.  It
stays hidden which of these reports is the user's.  The clone pair (P, Q) is two laws of counts of
reports; it costs at least as much as what the analyst sees.

References: Feldman, McMillan & Talwar (2022), Theorem 3.2 (the clone pair, computed numerically
here); (2021), Theorem 3.1 (a closed form, 2 to 4 times looser).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from accountant.amplification.shuffling_bounds import (
    binary_hockey_sticks,
    clone_hockey_sticks,
    yes_count_distributions,
)
from accountant.composition.composed_loss import loss_of_plan
from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.losses.finite_pair import OWN_ROUNDING, PairLoss
from accountant.losses.loss import Loss, SymmetricLoss, epsilons
from accountant.losses.loss_numerics import LossNumerics
from accountant.numerics import Array
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
