"""Rates of success of attackers, which (epsilon, delta) does not show at a glance.

An attacker tests which of two neighbouring data sets gave the answers.  With f(alpha) the least
type II error at the type I error alpha, the rates here are 1 - f at some level, the total variation
delta(0), or the Bayes risk; each is returned as a proved interval.  A plan has two directions,
which of the neighbours is the first, and a loss may cover many pairs of output laws: then the lower
end of a rate is that of one of these pairs.

References: Kulynych, Gomez, Kaissis, du Pin Calmon & Troncoso (2024) for calibration to them;
Hayes, Mahloujifar & Balle (2023) and Kaissis, Hayes, Ziller & Rueckert (2023) for reconstruction;
the proofs are in `docs/proofs/tradeoff.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from accountant.accountants.tight import Tight
from accountant.accountants.tradeoff_curves import single_pairs
from accountant.accountants.tradeoff_ends import tradeoff_ends
from accountant.composition.composed_loss import losses_of_items
from accountant.composition.profile_ends import profile_ends
from accountant.domains import POSITIVE_DELTA, Interval
from accountant.formatting import format_lower, format_short, format_upper
from accountant.numerics import Array
from accountant.numerics.rounding import ULP
from accountant.plans.plan import Plan, as_plan
from accountant.table_display import Table, TableDisplay

RATE = Interval(0.0, 1.0)  # the domain of a false-positive rate
UPPER_ONLY = "one end only: nothing is proved from the other side"
ENVELOPE = "a bound on many pairs: the other end is that of one of them"


class RateBounds(NamedTuple):
    """An interval that holds a rate: both ends are proved, rounded outward.

    Parameters
    ----------
    lower : float
        Rounded down.
    upper : float
        Rounded up.

    Examples
    --------
    >>> from accountant import PureLoss, advantage
    >>> lower, upper = advantage(PureLoss(1.0))
    >>> round(lower, 6), round(upper, 6)
    (0.462117, 0.462117)
    """

    lower: float
    upper: float


def advantage(plan: Plan) -> RateBounds:
    """Return how much more often an attacker is right than wrong about a record, at best.

    It is the greatest difference between the true-positive and the false-positive rate: the total
    variation, which is delta at epsilon 0.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.

    Returns
    -------
    RateBounds
        Lower end rounded down, upper end rounded up.

    Examples
    --------
    >>> from accountant import GaussianLoss, advantage
    >>> round(advantage(GaussianLoss(1.0)).upper, 6)
    0.382925
    """
    return _profile_bounds(as_plan(plan), 0.0, 0.0)


def true_positive_rate(plan: Plan, fpr: float) -> RateBounds:
    """Return the share of records in the data that an attacker finds, at a false-positive rate.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    fpr : float
        The share of records outside the data that the attacker takes for one inside, in [0, 1].

    Returns
    -------
    RateBounds
        ``1 - f(fpr)``, f the trade-off curve: lower end rounded down, upper end rounded up.

    References
    ----------
    Dong, Roth & Su (2022), Proposition 2.12.

    Examples
    --------
    >>> from accountant import GaussianLoss, true_positive_rate
    >>> round(true_positive_rate(GaussianLoss(2.0), fpr=0.1).upper, 6)
    0.76376
    """
    return _powers(as_plan(plan), np.array([RATE.check("fpr", fpr)]))[0]


def bayes_risk(plan: Plan, prior: float) -> RateBounds:
    """Return how often an attacker who knows the prior is wrong about a record, at the least.

    It is the least ``prior a + (1 - prior) b`` over the error rates (a, b) of all tests, for the
    worse choice of the neighbour that has the probability ``prior``.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    prior : float
        How likely one of the two neighbours is before the answers, in (0, 1).

    Returns
    -------
    RateBounds
        Lower end, which protects, rounded down; upper end rounded up.

    Examples
    --------
    >>> from accountant import PureLoss, bayes_risk
    >>> round(bayes_risk(PureLoss(1.0), prior=0.5).lower, 6)
    0.268941
    """
    plan, prior = as_plan(plan), POSITIVE_DELTA.check("prior", prior)
    # The risk is min(prior, 1 - prior) (1 - delta(|ln odds|)), where the odds are
    # prior / (1 - prior) and delta is that of the worse direction.
    smaller = min(prior, 1 - prior)
    log_odds = math.log(max(prior, 1 - prior) / smaller)
    # 1 - prior and the quotient each err by half an ULP of themselves, and the logarithm by one:
    # less than this in all.
    error = 4 * ULP * (1 + log_odds) if log_odds else 0.0
    delta = _profile_bounds(plan, log_odds, error)
    lower, upper = smaller * (1 - delta.upper), smaller * (1 - delta.lower)
    # An attacker may always guess the likelier neighbour, so the risk is at most `smaller`.
    return RateBounds(
        lower * (1 - 4 * ULP) if delta.upper else smaller, min(upper * (1 + 4 * ULP), smaller)
    )


def reconstruction(plan: Plan, prior: float) -> RateBounds:
    """Return how often an attacker can guess a record who was right that often without answers.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    prior : float
        The chance to guess right, or near enough, without the answers, in (0, 1).

    Returns
    -------
    RateBounds
        ``1 - f(prior)``, f the trade-off curve: no attacker reaches more than the upper end.

    References
    ----------
    Hayes, Mahloujifar & Balle (2023); Kaissis, Hayes, Ziller & Rueckert (2023).

    Examples
    --------
    >>> from accountant import PureLoss, reconstruction
    >>> round(reconstruction(PureLoss(1.0), prior=0.01).upper, 6)
    0.027183
    """
    return _powers(as_plan(plan), np.array([POSITIVE_DELTA.check("prior", prior)]))[0]


@final
@dataclass(frozen=True, slots=True)
class AttackRate:
    """One rate of an attack, as an interval."""

    rate: str  # its name
    at: float | None  # the false-positive rate or the prior for which it is
    lower: float
    upper: float
    note: str = ""  # what the ends are where they are not those of one pair


@final
@dataclass(frozen=True, slots=True)
class AttackRates(TableDisplay):
    """What an attacker can do, as rates between proved bounds.  Prints a table.

    Parameters
    ----------
    plan : Plan
        What was asked about.
    rows : tuple of AttackRate
        The advantage, a true-positive rate for each false-positive rate, and for each prior the
        Bayes risk and the chance of a reconstruction.

    Examples
    --------
    >>> from accountant import GaussianLoss, attack_rates
    >>> print(attack_rates(GaussianLoss(1.0), fpr=0.01, prior=0.5))
    rate                         at       lower     upper
    advantage                            0.3829    0.3830
    true-positive rate         0.01     0.09236   0.09237
    Bayes risk                  0.5      0.3085    0.3086
    reconstruction              0.5      0.8413    0.8414
    """

    plan: Plan
    rows: tuple[AttackRate, ...]

    def __iter__(self) -> Iterator[AttackRate]:
        return iter(self.rows)

    def _table(self) -> Table:
        columns = ("rate", "at", "lower", "upper", "note")
        rows = [[getattr(row, name) for name in columns] for row in self.rows]
        return Table(columns, rows, lower=("lower",), upper=("upper",))

    def __str__(self) -> str:
        lines = [f"{'rate':<22}{'at':>9}{'lower':>12}{'upper':>10}"]
        for row in self.rows:
            at = "" if row.at is None else format_short(row.at)
            ends = f"{format_lower(row.lower):>12}{format_upper(row.upper):>10}"
            lines.append(f"{row.rate:<22}{at:>9}{ends}")
        return "\n".join([*lines, *dict.fromkeys(row.note for row in self.rows if row.note)])

    def to_list(self) -> list[dict[str, Any]]:
        """Return one dict for each rate, as JSON has them.

        Returns
        -------
        list of dict
            With the keys "rate", "at", "lower", "upper" and "note".
        """
        names = ("rate", "at", "lower", "upper", "note")
        return [{name: getattr(row, name) for name in names} for row in self.rows]


def attack_rates(
    plan: Plan,
    fpr: float | Sequence[float] = (0.001, 0.01, 0.1),
    prior: float | Sequence[float] = (0.01, 0.5),
) -> AttackRates:
    """Return what an attacker can do with the answers of a plan, as rates between proved bounds.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    fpr : float or sequence of float
        False-positive rates at which the true-positive rate is asked, in [0, 1].
    prior : float or sequence of float
        Beliefs before the answers, in (0, 1): in one of two neighbours for the Bayes risk, and the
        chance of a right guess for the reconstruction.

    Returns
    -------
    AttackRates
        All rows, each rounded outward.

    Raises
    ------
    ParameterError
        If a rate is none.

    Examples
    --------
    >>> from accountant import GaussianLoss, attack_rates
    >>> [row.rate for row in attack_rates(GaussianLoss(1.0), fpr=0.01, prior=[])]
    ['advantage', 'true-positive rate']
    """
    plan = as_plan(plan)
    levels, priors = _each("fpr", fpr, RATE), _each("prior", prior, POSITIVE_DELTA)
    note = _note(plan)
    rows = [AttackRate("advantage", None, *advantage(plan), note)]
    powers = _powers(plan, np.array([*levels, *priors]))
    for level, power in zip(levels, powers, strict=False):
        rows.append(AttackRate("true-positive rate", level, *power, note))
    rows += [AttackRate("Bayes risk", belief, *bayes_risk(plan, belief), note) for belief in priors]
    for belief, power in zip(priors, powers[len(levels) :], strict=True):
        rows.append(AttackRate("reconstruction", belief, *power, note))
    return AttackRates(plan, tuple(rows))


def _each(argument: str, values: object, domain: Interval) -> list[float]:
    """Return one number or many as floats, each checked."""
    many = isinstance(values, Iterable) and not isinstance(values, str)
    if isinstance(values, np.ndarray) and values.ndim == 0:
        many = False
    return [domain.check(argument, value) for value in (list(values) if many else [values])]  # type: ignore[call-overload]  # just seen


def _powers(plan: Plan, levels: Array) -> list[RateBounds]:
    """Return bounds on the power of the best test at each level; it is at least the level."""
    flat, where = np.unique(levels, return_inverse=True)
    low, high, _ = tradeoff_ends(plan, flat)
    # A power is 1 less a type II error; ULP is for the subtraction.
    below, above = np.maximum(1 - high - ULP, 0.0), np.minimum(1 - low + ULP, 1.0)
    below, above = np.maximum(below, flat), np.maximum(above, flat)
    return [RateBounds(float(below[i]), float(above[i])) for i in where]


def _profile_bounds(plan: Plan, epsilon: float, error: float) -> RateBounds:
    """Return bounds on delta of the worse direction, at an epsilon known up to ``error``.

    Delta falls, so that the upper bound is taken below this epsilon, and the lower bound above it.
    """
    # At epsilon 0 delta is the total variation, the same in both directions.
    pairs = single_pairs(plan, both=epsilon != 0)
    intervals = []
    for pair in pairs:
        ends = profile_ends(pair)
        around = np.array([max(epsilon - error, 0.0), epsilon + error])
        # A row for each of both epsilons: bounds on delta below the epsilon, and above it.
        (_, high), (low, _) = np.transpose(ends.near(epsilon, around)).tolist()
        intervals.append((low, high))
    low, high = (max(bounds) for bounds in zip(*intervals, strict=True))
    if _note(plan):  # other accountants may know more of a bound on many pairs
        high = min(high, Tight().delta(plan, max(epsilon - error, 0.0)))
    return RateBounds(min(low, high), high)


def _note(plan: Plan) -> str:
    """Return the note on an interval whose ends are not those of one pair; mostly empty."""
    losses = [loss for loss, _ in losses_of_items(list(plan.losses()))]
    if any(loss.numerics.is_numerical for loss in losses):
        return UPPER_ONLY
    return ENVELOPE if any(loss.numerics.is_upper_envelope for loss in losses) else ""
