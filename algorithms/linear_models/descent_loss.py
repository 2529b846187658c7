"""How many releases a descent is worth, and how far it goes: the least expected loss.

A descent on a quadratic loss moves the coefficients in a direction of curvature h, after steps that
add up to the *travel* t, by the part 1 - exp(-t h) of the way to the minimum.  The noise of all
gradients adds up meanwhile.  So the loss that is left is known, but for what the data are: the part
of the way that is missing, times what that direction explains, and the noise (`expected_losses`).
Before the data are read, the spectrum of the features is one of `reference_spectra`; after the
products of features are released, it is theirs.

Everything that a budget decides follows from the least expected loss: whether products are
released (`worthwhile_shares`); the ridge of the map, the length of the constant feature, the travel
and whether iterates are averaged (`best_steps`).  The noise that is left in the coefficients is
then known as well, and `shrunk` takes off what is no more than noise.

References: Yao, Rosasco & Caponnetto (2007) for early stopping; Benaych-Georges & Nadakuditi (2011)
for eigenvalues beside noise; James & Stein (1961).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from accountant.numerics import Array

# All squares are in units of what the features explain of a target, or of the loss.
# Spectra of features before the data are read: eigenvalues in proportion to 1 / i^power.
POWERS = (0.0, 0.5, 1.0)
# The candidates.  A ridge of the map is over the mean squared length of rows.
RIDGES = tuple(10.0**-k for k in np.arange(0, 3, 0.25))
CONSTANTS = (0.125, 0.25, 0.5, 1.0, 2.0)  # lengths of the constant feature over a mapped row
TRAVELS = tuple(2.0 ** (k / 2) for k in range(16))
LONGEST = 0.6  # the longest step of a descent, in units of the longest that is surely stable
# The shortest travel is taken whose loss is at most by this part above the least.
NEGLIGIBLE = 0.1
# What was not gone of the way makes up for that by this factor at most.
MOST_LONGER = 2.0


class Prospect(NamedTuple):
    """What is known of a descent before its first gradient."""

    noise: float  # deviation of the mean of all gradients, in units of the clipping norm
    longest_travel: float
    clip_square: float  # of the clipping norm, over the mean squared length of mapped rows
    constant: float  # the square of the constant that is to be reached; 0 if there is none
    longest_constant: float = math.inf  # of the constant feature over the length of the others
    shortest_constant: float = 0.0


class Steps(NamedTuple):
    """The steps of a descent."""

    loss: float  # expected
    ridge: float  # of the map, over the mean squared length of rows; infinite without a map
    constant: float  # the length of the constant feature over that of the other features
    travel: float  # the sum of all steps, in units of the longest step that is surely stable
    averaged: bool  # whether the mean of the iterates is taken, or the last one

    def missing(self, curvatures: Array) -> Array:
        """Return the part of the way to the minimum that is not gone, for each curvature."""
        return missing_part(self.travel * curvatures, self.averaged)

    def variance(self, curvatures: Array) -> Array:
        """Return the variance of a coefficient, for gradients whose mean has the variance 1."""
        return self.travel**2 * noise_part(self.travel * curvatures, self.averaged)


def missing_part(path: Array, averaged: bool) -> Array:
    """Return the part of the way that is missing, for the ``path``: travel times curvature."""
    x = np.maximum(path, 1e-2)
    if not averaged:
        return np.asarray(np.exp(-x))
    # The iterate after the part u of the travel weighs 2 u: the integral of 2 u exp(-x u).
    return np.asarray(2 * (1 - np.exp(-x) * (1 + x)) / x**2)


def noise_part(path: Array, averaged: bool) -> Array:
    """Return the variance of a coefficient over the squared travel."""
    if not averaged:
        x = np.maximum(path, 1e-2)
        # The noise at the part u acts by exp(-x (1 - u)).
        return np.asarray((1 - np.exp(-2 * x)) / (2 * x))
    # The noise at the part a acts on all later iterates, by r(a) = integral from a to 1 of
    # 2 u exp(-x (u - a)) = 2 (a / x + 1 / x^2 - exp(-x (1 - a)) k), with k = 1 / x + 1 / x^2.
    # This is the integral of r(a)^2; below x = 0.1 its terms cancel, and it is nearly 8 / 15.
    x = np.maximum(path, 0.1)
    k = 1 / x + 1 / x**2
    square = x / 3 * (k**3 - x**-6.0) - 2 * k / x**2 + k**2 * (1 - np.exp(-2 * x)) / (2 * x)
    return np.asarray(4 * square)


def reference_spectra(size: int) -> list[Array]:
    """Return eigenvalues that add up to 1, descending: equal ones, and such as decay."""
    spectra = [np.arange(1, size + 1) ** -power for power in POWERS]
    return [spectrum / spectrum.sum() for spectrum in spectra]


def curvatures_of(spectrum: Array, ridge: float) -> Array:
    """Return the curvatures of mapped features, of a loss that has the curvature 1 in a score."""
    return spectrum if ridge == math.inf else spectrum / (spectrum + ridge)


def expected_losses(
    spectrum: Array, prospect: Prospect, ridge: float, averaged: bool, travels: Array
) -> Array:
    """Return the loss that descents leave, where features explain a square of 1.

    There is a row for each of `CONSTANTS`, and a column for each of the ``travels``.  What a
    direction explains is taken to be in proportion to its eigenvalue.
    """
    slopes = curvatures_of(spectrum, ridge)
    length_square = float(slopes.sum())
    # The constant feature is at most 1 long, so that its curvature is not above 1.
    lengths = np.clip(CONSTANTS, prospect.shortest_constant, prospect.longest_constant)
    lengths = lengths * (prospect.constant > 0)
    constants = np.minimum(lengths**2 * length_square, 1.0)
    of_slopes, of_constants = np.outer(travels, slopes), np.outer(constants, travels)
    missing = np.einsum("ij,j->i", missing_part(of_slopes, averaged) ** 2, spectrum)
    missing = missing + prospect.constant * missing_part(of_constants, averaged) ** 2
    noisy = np.einsum("ij,j->i", noise_part(of_slopes, averaged), slopes)
    noisy = noisy + constants[:, None] * noise_part(of_constants, averaged)
    clip_squares = prospect.clip_square * (length_square + constants[:, None])
    return np.asarray(missing + prospect.noise**2 * clip_squares * travels**2 * noisy)


def best_steps(spectra: Sequence[Array], prospect: Prospect, least_ridge: float) -> Steps:
    """Return the steps of the least expected loss, on average over the ``spectra``.

    A ``least_ridge`` of infinity is for features without a map.
    """
    ridges = [least_ridge, *(ridge for ridge in RIDGES if ridge > least_ridge)]
    longest = prospect.longest_travel
    travels = np.array([*(travel for travel in TRAVELS if travel < longest), longest])
    candidates = list(product(ridges, (False, True)))
    losses = np.array(
        [
            np.mean(
                [expected_losses(values, prospect, ridge, averaged, travels) for values in spectra],
                axis=0,
            )
            for ridge, averaged in candidates
        ]
    )
    of_travels = losses.min(axis=(0, 1))
    column = int(np.argmax(of_travels <= (1 + NEGLIGIBLE) * of_travels.min()))
    choice, row = np.unravel_index(losses[:, :, column].argmin(), losses.shape[:2])
    ridge, averaged = candidates[choice]
    constant = float(np.clip(CONSTANTS, prospect.shortest_constant, prospect.longest_constant)[row])
    return Steps(float(of_travels[column]), ridge, constant, float(travels[column]), averaged)


def separated(eigenvalues: Array, radius: float, trace: float) -> Array:
    """Return eigenvalues without the noise that was added to their matrix.

    ``radius`` is the norm of the noise.  Noise moves an eigenvalue v above it to v + radius^2 / 4v;
    those that it hides are taken to be equal, and together what the ``trace`` leaves.
    """
    above = eigenvalues > radius
    roots = np.sqrt(np.maximum(eigenvalues**2 - radius**2, 0.0))
    values = np.where(above, (eigenvalues + roots) / 2, 0.0)
    hidden = np.count_nonzero(~above)
    if hidden:
        values[~above] = min(max((trace - float(values.sum())) / hidden, 0.0), radius)
    return values


def kept_part(squares: Array, variances: Array, usual: float, missing: float) -> float:
    """Return what to multiply coefficients by that have noise of these variances.

    ``squares`` and ``variances`` are in one unit, weighted alike.  The share of the sum of squares
    that is no noise is kept (James & Stein).  What is no noise is the weighted mean of what the
    squares leave and of what is ``usual``, which deviates by as much.  As the part ``missing`` of
    the way was not gone, the coefficients are too short already, which makes up for what is taken.
    """
    noise_square = float(variances.sum())
    # The noise's sum of squares has the variance 2 sum variances^2.
    weight = 1 / (1 + 2 * float(np.sum((variances / usual) ** 2)))
    square = usual + weight * (float(squares.sum()) - noise_square - usual)
    if square <= 0:
        return 0.0
    return min(1.0, square / (square + noise_square) * min(1 / (1 - missing), MOST_LONGER))
