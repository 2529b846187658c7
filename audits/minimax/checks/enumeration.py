"""Every inequality against channels that can be enumerated: no exact value may exceed its bound.

`enumerate_checks` returns the rows that the command line prints, of each claim the closest one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from accountant.domains import IntegerRange
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from audits.minimax.checks.channels import (
    best_decoding_rate,
    channels,
    joint_distribution,
    kl_divergences,
    mutual_information,
    point_distributions,
)
from audits.minimax.checks.enumerated_labels import check_distances, check_signs
from audits.minimax.checks.enumerated_protocols import check_sequential
from audits.minimax.decoding.record_decoding import most_right
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.contraction import (
    chi_squared_divergence,
    fano_information,
    le_cam_divergence,
)

_OUTCOMES = 20_000


@final
@dataclass(frozen=True, slots=True)
class Check:
    """An exact value and its bound.

    Parameters
    ----------
    claim : str
        What is bounded.
    case : str
        The channel, p, n and epsilon.
    exact : float
        The exact value, by enumeration.
    bound : float
        The upper bound that the theorem gives.

    Examples
    --------
    >>> from audits.minimax import Check
    >>> check = Check("P(right decode)", "p = 2, n = 1", exact=0.45, bound=0.5)
    >>> check.holds, check.tightness
    (True, 0.9)
    """

    claim: str
    case: str
    exact: float
    bound: float

    @property
    def holds(self) -> bool:
        """True if the bound holds, up to the rounding of sums."""
        return self.exact <= self.bound * (1 + 1e-9) + 1e-13

    @property
    def tightness(self) -> float:
        """``exact / bound``: 1 if the channel attains the bound; 0 if the bound is below 1e-9."""
        return self.exact / self.bound if self.bound > 1e-9 else 0.0


def enumerate_checks(rng: Rng = 0, largest_p: int = 6, users: int = 4) -> list[Check]:
    """Check every inequality against private channels on small p, by enumeration.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None, optional
        Seed or generator of the random channels.
    largest_p : int, optional
        Largest number of features, 2 to 12.
    users : int, optional
        Largest number of users, 1 to 8.

    Returns
    -------
    list of Check
        Of each claim at each p the check closest to its bound, or the first that fails.  Exact
        values are not rounded; `Check.holds` allows a relative 1e-9.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from audits.minimax import enumerate_checks
    >>> checks = enumerate_checks(largest_p=2, users=1)
    >>> all(check.holds for check in checks)
    True
    """
    source, users = generator(rng), IntegerRange(1, 8).check("users", users)
    largest_p = IntegerRange(2, 12).check("largest_p", largest_p)
    closest: dict[tuple[str, str], Check] = {}
    for claim, group, case, exact, bound in _all_rows(source, largest_p, users):
        check = Check(claim, f"{group}{case}", exact, bound)
        old = closest.get((claim, group))
        if old is None or (old.holds and (not check.holds or check.tightness > old.tightness)):
            closest[claim, group] = check
    return list(closest.values())


# claim, what the closest is taken over, the rest of the case, exact, bound
CheckRow = tuple[str, str, str, float, float]


def _all_rows(rng: np.random.Generator, largest_p: int, users: int) -> Iterator[CheckRow]:
    for p in range(2, largest_p + 1):
        if p <= 4:
            family = SignedBasis(p, 0.7)
            yield (
                "C_infinity",
                f"p = {p}",
                "",
                c_infinity(point_distributions(family)),
                family.c_infinity,
            )
        family = SignedBasis(p, 0.7)
        yield "C_2", f"p = {p}", "", c_two(point_distributions(family)), family.c_two
        for epsilon, d in itertools.product((0.1, 0.5, 1.0, 2.0, 4.0), (0.2, 0.7, 1.0)):
            yield from _noninteractive_rows(SignedBasis(p, d), epsilon, users, rng)
            yield from check_sequential(SignedBasis(p, d), epsilon, users, rng)
    yield from check_distances(rng)
    yield from check_signs()


def _noninteractive_rows(
    family: SignedBasis, epsilon: float, users: int, rng: np.random.Generator
) -> Iterator[CheckRow]:
    law, group = point_distributions(family), f"p = {family.p}"
    for name, channel in channels(family.p, epsilon, rng):
        # the largest chi-squared divergence between the reports of two inputs
        chi2 = float(np.max((channel**2) @ (1 / channel).T)) - 1
        for n in range(1, users + 1):
            if channel.shape[1] ** n > _OUTCOMES:
                break
            # a sign of another coordinate of every user; the other channels are the same for all
            shifted = [
                np.roll(law.reshape(2, family.p, -1), i, axis=1).reshape(law.shape) @ channel
                for i in range(n)
            ]
            joint, none = (
                joint_distribution(shifted),
                joint_distribution([channel.mean(axis=0)[None]] * n),
            )
            drawn = f"d = {family.d:g}, {name}"
            case = f", n = {n}, epsilon = {epsilon:g}, {drawn}"
            information = fano_information(family, n, epsilon)
            yield "I(V; Z), at once", group, case, mutual_information(joint), information.sharp
            at = f"epsilon = {epsilon:g}"
            yield (
                "I(V; Z), best channel",
                at,
                f", {group}, n = {n}, {drawn}",
                mutual_information(joint),
                information.sharp,
            )
            yield "printed I(V; Z)", group, case, mutual_information(joint), information.published
            right = most_right(family, n, epsilon)
            yield "P(right decode), at once", group, case, best_decoding_rate(joint), right
            if family.lean < 1:
                divergence = float(kl_divergences(none, joint).mean())
                nats = chi_squared_divergence(family, n, chi2)
                yield "mean KL(M_0 || M_v) by chi^2", group, case, divergence, nats.sharp
                yield "printed KL by chi^2", group, case, divergence, nats.published
            divergence = float(kl_divergences(none, joint).mean())
            nats = le_cam_divergence(family, n, epsilon)
            yield "mean KL(M_0 || M_v), at once", group, case, divergence, nats.sharp


def c_infinity(law: Array) -> float:
    """``sup avg_v (E_v g - E_0 g)^2`` over all g of -1 and 1, at which it is attained."""
    shift = law - law.mean(axis=0)
    inputs = law.shape[1]
    greatest = 0.0
    for block in np.array_split(np.arange(2 ** (inputs - 1)), 8):
        signs = np.where((block[:, None] >> np.arange(inputs)) & 1, 1.0, -1.0)
        greatest = max(greatest, float(((signs @ shift.T) ** 2).mean(axis=1).max()))
    return greatest


def c_two(law: Array) -> float:
    """``sup avg_v (E_v g - E_0 g)^2`` over ``E_0 g^2 <= 1``: a singular value, squared."""
    middle = law.mean(axis=0)
    scores = (law - middle) / np.sqrt(middle)
    return float(np.linalg.norm(scores, 2) ** 2) / len(law)
