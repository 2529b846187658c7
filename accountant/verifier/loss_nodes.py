"""The pairs that losses and mechanisms of a plan stand for: one function for each kind.

A plan, in the proof file that is checked, is a tree of tables; a node is one table.  Each function
reads the fields of a node and returns a release, as `releases` lists them: a tuple of a kind and
exact numbers that stands for a pair (P, Q) of laws on two neighbours, or for a set of pairs by a
pair above all of them and one of them.  In ("laplace", m, 1, 1 if on a grid) m is the shift.

What a group of records costs is known for the kinds in `LOSSES_OF_GROUPS`: noise whose centre the
whole group moves, and bounds that are known for groups.  ``size`` is the number of records of the
group.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, isqrt
from typing import Any

from .document import Fields, ProofError, is_list, need
from .releases import ONE, STILL, ZERO, Release

# A mechanism's noise: real numbers (idealised), or drawn exactly on a grid.
ARITHMETIC = "idealised", "exact"


def gaussian_loss(fields: Fields, size: int) -> Release:
    """Gaussian noise, whose centre a group moves ``size`` times as far."""
    return "gaussian", (size * fields.number("mu")) ** 2


def laplace_loss(fields: Fields, size: int) -> Release:
    """Laplace noise, whose centre a group moves ``size`` times as far."""
    return "laplace", size * fields.number("shift"), ONE, 0


def gaussian_mechanism(fields: Fields, size: int) -> Release:
    """A mechanism with Gaussian noise, whose sensitivity is a distance in L2."""
    ratio, _ = noise_ratio(fields, "Gaussian", power=2)
    return "gaussian", (size * ratio) ** 2


def laplace_mechanism(fields: Fields, size: int) -> Release:
    """A mechanism with Laplace noise, whose sensitivity is a distance in L1."""
    ratio, is_on_grid = noise_ratio(fields, "Laplace", power=1)
    return "laplace", size * ratio, ONE, int(is_on_grid)


def noise_ratio(fields: Fields, kind: str, *, power: int) -> tuple[Fraction, bool]:
    """Return sensitivity over scale, and whether the noise is drawn on a grid.

    Theorem (docs/proofs/discrete.md, 4): noise on a grid of step g <= 2^-40 scale, drawn wider by
    the share of the sensitivity that rounding may add, costs no more than the stated noise.  Of d
    coordinates rounding adds d g in L1 and sqrt(d) g in L2, which must be below the sensitivity.
    """
    is_ideal = fields.take("arithmetic", "exact", fits=ARITHMETIC.__contains__) == ARITHMETIC[0]
    ratio = fields.number("sensitivity", 0, 2**999, ONE) / fields.number("scale")
    is_fine = dimension(fields) < (ratio * 2**39) ** power
    need(ratio and (is_fine or is_ideal), f"{kind} on a grid so coarse has no proof here")
    return ratio, not is_ideal


def dimension(fields: Fields) -> int:
    """Return how many coordinates a value has; None in the file stands for one number."""
    coordinates = fields.take("dimension", None)
    fits = coordinates is None or (type(coordinates) is int and 1 <= coordinates <= 2**53)
    need(fits, f"dimension of {fields.name} is wrong or out of range", ProofError)
    return coordinates or 1


def pure_loss(fields: Fields, size: int) -> Release:
    """A pure loss: a response is above all such pairs; a group may be one of Laplace noise."""
    epsilon = size * fields.number("epsilon", 0)
    response = "response", epsilon, ZERO
    return ("bound", response, ("laplace", epsilon, ONE, 0)) if size > 1 and epsilon else response


def bounded_range_loss(fields: Fields, size: int) -> Release:
    """All pairs whose losses have a range of epsilon; a response of epsilon / 2 is one of them."""
    epsilon = size * fields.number("epsilon", 0)
    return "bound", ("range", epsilon), ("response", epsilon / 2, ZERO)


def zcdp_loss(fields: Fields, size: int) -> Release:
    """All pairs that satisfy zCDP; a Gaussian of mu^2 = 2 rho is one of them.

    Of a group of g records rho is g^2 times as large where xi is 0 (group privacy, Bun & Steinke
    2016); where xi is more, there is no proof of groups here.
    """
    rho = size**2 * fields.number("rho")
    xi = fields.number("xi", 0, 2**999 * (size == 1), ZERO)
    return "bound", ("zcdp", rho, xi), ("gaussian", 2 * rho)


def summed_noise_loss(fields: Fields) -> Release:
    """The sum of shares of integer noise, moved by a shift."""
    shift = fields.whole("shift", 1, 2047)
    noise = Fields(fields.take("noise"), "the noise of a loss")
    law = noise.take("kind", fits=LAW_OF_SUM.__contains__)
    scale, terms = noise.number("scale"), noise.whole("terms", 1, 10**9, 1)
    noise.done()
    return summed_noise(LAW_OF_SUM[law], scale, Fraction(shift * shift), 1, terms=terms, size=1)


def skellam_mechanism(fields: Fields, size: int) -> Release:
    """A mechanism with Skellam noise, whose sensitivity is a distance in L2."""
    return summed_noise("skellam", *noise_on_vectors(fields), terms=1, size=size)


def sum_of_clients(fields: Fields, size: int) -> Release:
    """The sum of many clients' vectors, with the noise of those who did not drop out.

    Theorem (docs/proofs/summed_noise.md, 5): noise that is missing, or known, does not count, and
    any more noise costs nothing.
    """
    mechanism = Fields(fields.take("mechanism"), "the mechanism of a sum")
    law = mechanism.take("kind", fits=LAW_OF_SHARE.__contains__)
    noise = noise_on_vectors(mechanism)
    mechanism.done()
    clients = fields.whole("clients", 1, 10**9)
    survivors = clients - fields.whole("dropout", 0, clients - 1, 0)
    return summed_noise(LAW_OF_SHARE[law], *noise, terms=survivors, size=size)


def noise_on_vectors(fields: Fields) -> tuple[Fraction, Fraction, int]:
    """Return the scale, the squared sensitivity and the coordinates of noise on whole vectors.

    A float such as the square root of 3 may be a little less than it: 2^-40 is more than that.
    """
    scale, sensitivity = fields.number("scale"), fields.number("sensitivity", 0, 2**999, ONE)
    return scale, sensitivity**2 * (1 + Fraction(1, 2**40)), dimension(fields)


def summed_noise(
    law: str,
    scale: Fraction,
    squared_distance: Fraction,
    coordinates: int,
    *,
    terms: int,
    size: int,
) -> Release:
    """Return the sum of shares of noise, whose pair is known where one coordinate alone may move.

    The squared distance of two vectors of whole numbers is whole.  Other vectors cost at most what
    a Gaussian does, and at least what one coordinate does (`summed_noise`).
    """
    # A plan is read without python-flint, unless it has such noise.
    from .summed_noise import LISTED_VARIANCE, gaussian_above, variance_of

    squared = squared_distance if squared_distance < 1 else Fraction(floor(squared_distance))
    shift = isqrt(floor(squared_distance))
    is_listed = 1 <= shift < 2048 and variance_of(scale, terms) <= LISTED_VARIANCE
    pair = ("summed noise", law, scale, terms, shift) if is_listed else None
    if pair and (coordinates == 1 or squared == 1):
        need(size == 1, f"a group of this {law} noise has no proof here")
        return pair
    if coordinates == 1 and shift:
        squared = Fraction(shift * shift)
    return "bound", ("gaussian", gaussian_above(law, scale, terms, squared * size**2)), pair


LAW_OF_SHARE = {"DiscreteGaussian": "discrete gaussian", "Skellam": "skellam"}
LAW_OF_SUM = {"DiscreteGaussianSum": "discrete gaussian", "SkellamNoise": "skellam"}


LOSSES_OF_GROUPS: dict[str, Callable[[Fields, int], Release]] = {
    "GaussianLoss": gaussian_loss,
    "LaplaceLoss": laplace_loss,
    "Gaussian": gaussian_mechanism,
    "Laplace": laplace_mechanism,
    "Skellam": skellam_mechanism,
    "SumOfClients": sum_of_clients,
    "PureLoss": pure_loss,
    "BoundedRangeLoss": bounded_range_loss,
    "ZCDPLoss": zcdp_loss,
}


def approx_loss(fields: Fields) -> Release:
    """An (epsilon, delta) loss: a response that with chance delta reveals the record."""
    return "response", fields.number("epsilon", 0), fields.number("delta", 0, 1)


def discrete_laplace_loss(fields: Fields) -> Release:
    """Integers in proportion to e^{-|k| / scale}, moved by a shift."""
    return discrete_noise(fields, "DiscreteLaplaceLoss", "discrete laplace", "shift")


def discrete_laplace_mechanism(fields: Fields) -> Release:
    """A mechanism with noise in proportion to e^{-|k| / scale}, moved by the sensitivity."""
    return discrete_noise(fields, "DiscreteLaplace", "discrete laplace", "sensitivity")


def discrete_gaussian_loss(fields: Fields) -> Release:
    """Integers in proportion to e^{-k^2 / (2 scale^2)}, moved by a shift."""
    return discrete_noise(fields, "DiscreteGaussianLoss", "discrete gaussian", "shift")


def discrete_gaussian_mechanism(fields: Fields) -> Release:
    """A mechanism with noise in proportion to e^{-k^2 / (2 scale^2)}, moved by the sensitivity."""
    return discrete_noise(fields, "DiscreteGaussian", "discrete gaussian", "sensitivity")


def discrete_noise(fields: Fields, kind: str, release_kind: str, shift_key: str) -> Release:
    """Return noise on the whole numbers; it must be so narrow that its outcomes can be listed."""
    default = [1] if shift_key == "sensitivity" else []
    shift, scale = fields.whole(shift_key, 1, 2**53, *default), fields.number("scale")
    few = shift < 2048 and (release_kind == "discrete laplace" or scale < 50)
    need(few and dimension(fields) == 1, f"no proof of this {kind}")
    return release_kind, scale, shift


def randomized_response(fields: Fields) -> Release:
    """One of k labels: the true one with chance ``keep``, else one of the others at random."""
    k, keep = fields.whole("k", 2, 2**53), fields.number("keep", 0, 1)
    lie = (1 - keep) / (k - 1)
    return "pair", ((keep, lie), (lie, keep), (1 - keep - lie,) * 2)


def pair_loss(fields: Fields) -> Release:
    """The masses of each outcome under P and under Q, which add up to 1 each."""
    return "pair", normalised(fields, "p", "q", 1)


def mixture_of_gaussians(fields: Fields) -> Release:
    """Gaussian noise about one of several shifts under P, and about 0 under Q."""
    weighted_shifts = normalised(fields, "weights", "shifts", 2**999)
    return "mixture", fields.number("scale") ** -2, weighted_shifts, STILL


def normalised(fields: Fields, first_key: str, second_key: str, second_most: int) -> Any:
    """Return the rows of two lists of numbers, divided by their sums where they are masses.

    The second list holds masses where it may be 1 at most, or else shifts, which stay; a shift of
    weight 0 is left out.  Numbers in lists are floats always.
    """
    sides = [
        [
            Fraction(float(Fields({key: x}, fields.name).number(key, 0, high)))
            for x in fields.take(key, fits=is_list)
        ]
        for key, high in ((first_key, 1), (second_key, second_most))
    ]
    are_masses = second_most == 1
    sum_to_1 = all(
        abs(float(sum(side)) - 1) < 1e-9 for side in (sides if are_masses else sides[:1])
    )
    need(
        sum_to_1 and len(sides[0]) == len(sides[1]),
        f"{fields.name} needs distributions",
        ProofError,
    )
    first_sum, second_sum = sum(sides[0]), sum(sides[1]) if are_masses else 1
    return tuple(
        (x / first_sum, y / second_sum) for x, y in zip(*sides, strict=True) if x or are_masses
    )


LOSSES: dict[str, Callable[[Fields], Release]] = {
    "ApproxLoss": approx_loss,
    "DiscreteLaplaceLoss": discrete_laplace_loss,
    "DiscreteLaplace": discrete_laplace_mechanism,
    "DiscreteGaussianLoss": discrete_gaussian_loss,
    "DiscreteGaussian": discrete_gaussian_mechanism,
    "SummedNoiseLoss": summed_noise_loss,
    "RandomizedResponse": randomized_response,
    "PairLoss": pair_loss,
    "MixtureOfGaussians": mixture_of_gaussians,
}
