"""Every inequality against channels that can be enumerated: no exact value may exceed its bound.

A channel is an epsilon-LDP randomiser as a matrix: the probabilities of a user's private reports, a
row for each input, which mostly is a point of the cube {-1, 1}^p.  With p small, mutual information
and the best decoding are sums.  The shapes of matrices are in parentheses.

The claims bound what reports say about the point of a hard family: the information I(V; Z), the
divergence KL(M_0 || M_v) of the reports' laws, or the probability of decoding the point.  M_v is
the law of all reports if the records come from point v, and M_0 if they come from P_0, the mixture
of all points.  "Printed" claims are the papers' own, the others are this project's sharper ones.
Users report at once, or in turn, each knowing the reports before.

The hard laws of sparse regression are those of `SignedBasis`: signs x and a label y of size a,
whose law is uniform but for a factor 1 + lean * (sign of v) * (y x_j / a) at the point v = +-e_j.

`enumerate_checks` returns the rows that the command line prints, of each claim the closest one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np

from accountant.domains import IntegerRange
from accountant.numerics import Array
from accountant.randomness import Rng, generator
from audits.minimax.bounds.label_optimisation import sign_correlation
from audits.minimax.decoding.decoding_rates import most_right
from audits.minimax.families.label_family import LabelFamily
from audits.minimax.families.signed_basis import SignedBasis
from audits.minimax.information.contraction import (
    chi_squared_divergence,
    distance_information,
    fano_information,
    le_cam_divergence,
)

# The most joint outcomes of all reports that are enumerated; more would only take longer.
_OUTCOMES = 20_000
# The claim, the group of cases of which the closest one is shown, the rest of the case, the exact
# value, and the bound.
CheckRow = tuple[str, str, str, float, float]
# From the probabilities of the reports so far, under each point, to the next user's channel.
ChannelChoice = Callable[[Array], Array]


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
        """True if the bound holds, up to 1e-9 of it and 1e-13 for the rounding of sums."""
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
        closest_before = closest.get((claim, group))
        if closest_before is None or (
            closest_before.holds and (not check.holds or check.tightness > closest_before.tightness)
        ):
            closest[claim, group] = check
    return list(closest.values())


def _all_rows(rng: np.random.Generator, largest_p: int, users: int) -> Iterator[CheckRow]:
    """Yield the rows of all checks: constants of the family, reports at once, in turn, and others.

    C_infinity and C_2 are the family's constants in the bounds; see `c_infinity` and `c_two`.
    """
    for p in range(2, largest_p + 1):
        family, group = SignedBasis(p, 0.7), f"p = {p}"
        law = point_distributions(family)
        if p <= 4:  # there are 2^(2^p - 1) functions g to try, 2^31 at p = 5
            yield "C_infinity", group, "", c_infinity(law), family.c_infinity
        yield "C_2", group, "", c_two(law), family.c_two
        for epsilon, d in itertools.product((0.1, 0.5, 1.0, 2.0, 4.0), (0.2, 0.7, 1.0)):
            yield from _noninteractive_rows(SignedBasis(p, d), epsilon, users, rng)
            yield from check_sequential(SignedBasis(p, d), epsilon, users, rng)
    yield from check_distances(rng)
    yield from check_signs()


def _noninteractive_rows(
    family: SignedBasis, epsilon: float, users: int, rng: np.random.Generator
) -> Iterator[CheckRow]:
    """Yield rows of 1 to ``users`` users who report at once, by each of several channels."""
    law, group = point_distributions(family), f"p = {family.p}"
    for name, channel in channels(family.p, epsilon, rng):
        # the largest chi-squared divergence between the reports of two inputs
        chi2 = float(np.max((channel**2) @ (1 / channel).T)) - 1
        for n in range(1, users + 1):
            if channel.shape[1] ** n > _OUTCOMES:
                break
            # Every user has the channel on other coordinates, moved by one place: a channel that
            # asks for one sign then asks each user for another coordinate.
            shifted = [
                np.roll(law.reshape(2, family.p, -1), i, axis=1).reshape(law.shape) @ channel
                for i in range(n)
            ]
            joint = joint_distribution(shifted)
            reference = joint_distribution([channel.mean(axis=0)[None]] * n)
            drawn, at = f"d = {family.d:g}, {name}", f"epsilon = {epsilon:g}"
            case, case_at = f", n = {n}, {at}, {drawn}", f", {group}, n = {n}, {drawn}"
            information, nats = mutual_information(joint), fano_information(family, n, epsilon)
            yield "I(V; Z), at once", group, case, information, nats.sharp
            yield "I(V; Z), best channel", at, case_at, information, nats.sharp
            yield "printed I(V; Z)", group, case, information, nats.published
            right = most_right(family, n, epsilon)
            yield "P(right decode), at once", group, case, best_decoding_rate(joint), right
            divergence = float(kl_divergences(reference, joint).mean())
            if family.lean < 1:
                nats = chi_squared_divergence(family, n, chi2)
                yield "mean KL(M_0 || M_v) by chi^2", group, case, divergence, nats.sharp
                yield "printed KL by chi^2", group, case, divergence, nats.published
            nats = le_cam_divergence(family, n, epsilon)
            yield "mean KL(M_0 || M_v), at once", group, case, divergence, nats.sharp


def check_sequential(
    family: SignedBasis, epsilon: float, users: int, rng: np.random.Generator
) -> Iterator[CheckRow]:
    """Rows of sequential protocols, whose channels may depend on the reports so far.

    Each user is asked for the likeliest coordinate, for a random one, or for a random set.
    """
    p, group = family.p, f"p = {family.p}"
    questions = [coordinate_response(p, at, epsilon) for at in range(p)]

    # ``reach`` has the probability of the reports so far under each of the 2p points; points j and
    # p + j differ in the sign of coordinate j.
    def likeliest(reach: Array) -> Array:
        return questions[int(np.argmax(reach)) % p]

    def at_random(_: Array) -> Array:
        return questions[int(rng.integers(p))]

    def random_set(_: Array) -> Array:
        # A random channel of two reports: its columns are split at random into two sets.
        channel = translation_channel(rng.random(2**p) < 0.5, epsilon)
        one_report = channel[:, rng.random(2**p) < 0.5].sum(axis=1)
        return np.stack([one_report, 1 - one_report], axis=1)

    strategies: tuple[tuple[str, ChannelChoice], ...] = (
        ("likeliest coordinate", likeliest),
        ("random coordinate", at_random),
        ("random sets", random_set),
    )
    for name, ask in strategies:
        joint, reference = _report_tree(point_distributions(family), users, ask)
        case = f", n = {users}, epsilon = {epsilon:g}, d = {family.d:g}, {name}"
        divergence = float(kl_divergences(reference, joint).mean())
        mixture = float(kl_divergences(reference, joint.mean(axis=0)))
        nats = le_cam_divergence(family, users, epsilon)
        yield "mean KL(M_0 || M_v), in turn", group, case, divergence, nats.sharp
        yield "printed KL(M_0 || mean M_v), in turn", group, case, mixture, nats.published
        right = most_right(family, users, epsilon, "sequential")
        yield "P(right decode), in turn", group, case, best_decoding_rate(joint), right


def _report_tree(law: Array, users: int, ask: ChannelChoice) -> tuple[Array, Array]:
    """Distributions of all reports: (points, 2^users) under the points, (2^users,) under P_0.

    ``ask`` chooses the channel of each user, of two reports, at each node of the tree of reports.
    """
    joint, reference = np.ones((len(law), 1)), np.ones(1)
    for _ in range(users):
        nodes, reference_nodes = [], []
        for reach, chance in zip(joint.T, reference, strict=True):
            channel = ask(reach)
            nodes.append(reach[:, None] * (law @ channel))
            reference_nodes.append(chance * channel.mean(axis=0))
        joint, reference = np.concatenate(nodes, axis=1), np.concatenate(reference_nodes)
    return joint, reference


def subset_channel(k: int, size: int, epsilon: float) -> Array:
    """A random set of ``size`` labels, likelier by ``e^eps`` if it has the true one (Ye & Barg)."""
    subsets = list(itertools.combinations(range(k), size))
    inside = np.array([[label in subset for subset in subsets] for label in range(k)])
    weights = np.where(inside, math.exp(epsilon), 1.0)
    channel: Array = weights / weights.sum(axis=1, keepdims=True)
    return channel


def check_distances(rng: np.random.Generator) -> Iterator[CheckRow]:
    """Rows of random distributions on k labels, by the distances of their pairs."""
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        for _ in range(60):  # random cases at each epsilon
            # Small parameters of the Dirichlet law give distributions on few labels, large ones
            # nearly uniform distributions.
            k, points = int(rng.integers(2, 7)), int(rng.integers(2, 6))
            law = rng.dirichlet(np.full(k, rng.choice([0.05, 0.5, 5.0])), points)
            channel = subset_channel(k, int(rng.integers(1, k)), epsilon)
            distances = np.abs(law[:, None] - law).sum(axis=2) / 2
            n = int(rng.integers(1, 4))
            information = mutual_information(joint_distribution([law @ channel] * n))
            nats = distance_information(n, epsilon, float((distances**2).mean()))
            case = f"epsilon = {epsilon:g}, n = {n}, k = {k}, {points} laws"
            yield "I(V; Z) by distances", "", case, information, nats.sharp
            yield "printed I(V; Z) by distances", "", case, information, nats.published


def check_signs() -> Iterator[CheckRow]:
    """Rows of the correlation of n reports with the signs of paired labels."""
    for k, epsilon, d in itertools.product((2, 4, 6), (0.1, 1.0, 3.0), (0.1, 0.5, 1.0)):
        family = LabelFamily(k, d)
        law = np.array([family.shares(which) for which in range(family.points)])
        signs = np.where((np.arange(family.points)[:, None] >> np.arange(k // 2)) & 1, 1.0, -1.0)
        for size, n in itertools.product(range(1, k), (1, 2, 3)):
            joint = joint_distribution([law @ subset_channel(k, size, epsilon)] * n)
            total = joint.sum(axis=0)
            sign_means = signs.T @ joint / total
            exact = float((sign_means**2 * total).sum() / len(law) / (k // 2))
            bound = sign_correlation(n, k, epsilon, d) ** 2
            case = f", n = {n}, epsilon = {epsilon:g}, d = {d:g}, sets of {size}"
            yield "mean E[v_j | Z]^2", f"k = {k}", case, exact, bound


def c_infinity(law: Array) -> float:
    """``sup avg_v (E_v g - E_0 g)^2`` over all g of -1 and 1, at which it is attained."""
    # Functions g are the bits of a number; g and -g give the same, so half of them are tried.
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


def cube(p: int) -> Array:
    """All of ``{-1, 1}^p``, (2^p, p)."""
    bits = (np.arange(2 ** IntegerRange(1, 12).check("p", p))[:, None] >> np.arange(p)) & 1
    signs: Array = np.where(bits, 1.0, -1.0)
    return signs


def point_distributions(family: SignedBasis) -> Array:
    """The distribution of ``w = y x / a`` under every point, (2p, 2^p).

    w is sufficient: given w, (x, y) has one distribution under every point.
    """
    w = cube(family.p)
    signs = np.concatenate([w.T, -w.T])
    chances: Array = (1 + family.lean * signs) / len(w)
    return chances


def coordinate_response(p: int, at: int, epsilon: float) -> Array:
    """The sign of one coordinate of w by randomised response: (2^p, 2)."""
    is_positive = cube(p)[:, at] > 0
    keep = 1 / (1 + math.exp(-epsilon))
    positive_chance = np.where(is_positive, keep, 1 - keep)
    return np.stack([positive_chance, 1 - positive_chance], axis=1)


def translation_channel(members: Array, epsilon: float) -> Array:
    """Report z is likelier by ``e^eps`` if ``w z`` is among the members: (2^p, 2^p).

    ``members`` marks points of the cube.  Every set of them is an eps-LDP channel: each row has the
    same weights in another order, and so the same sum.
    """
    number = np.arange(len(members))
    # w z has a 1 bit where w and z agree
    agreeing = (len(members) - 1) ^ number[:, None] ^ number
    weights = np.where(members[agreeing], math.exp(epsilon), 1.0)
    channel: Array = weights / weights.sum(axis=1, keepdims=True)
    return channel


def channels(p: int, epsilon: float, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Named epsilon-LDP channels on the cube: one sign, half-spaces, random sets, random noise."""
    yield "sign of a coordinate", coordinate_response(p, 0, epsilon)
    sums = cube(p).sum(axis=1)
    for threshold in range(-p + 2, p + 1, 2):
        yield f"half-space from {threshold}", translation_channel(sums >= threshold, epsilon)
    for _ in range(3):
        share = rng.uniform(0.1, 0.9)
        yield "random set", translation_channel(rng.random(2**p) < share, epsilon)
    # weights in [1, e^(eps / 2)] differ by a factor e^(eps / 2) at most, and so do the sums of rows
    weights = np.exp(epsilon / 2 * rng.random((2**p, 5)))
    yield "random weights", weights / weights.sum(axis=1, keepdims=True)


def joint_distribution(tables: list[Array]) -> Array:
    """The joint distribution of independent reports, (points, outcomes) each: (points, product)."""
    return reduce(
        lambda joint, table: (joint[:, :, None] * table[:, None]).reshape(len(joint), -1), tables
    )


def mutual_information(law: Array) -> float:
    """``I(V; Z)`` of a uniform V, from (points, outcomes)."""
    return float(kl_divergences(law, law.mean(axis=0)).mean())


def kl_divergences(first: Array, second: Array) -> Array:
    """``KL(first || second)`` along the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(first > 0, first * np.log(first / second), 0.0)
    total: Array = terms.sum(axis=-1)
    return total


def best_decoding_rate(law: Array) -> float:
    """The probability that a decoder is right that names the likeliest of equally likely points."""
    return float(law.max(axis=0).sum() / len(law))
