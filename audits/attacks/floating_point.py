"""The low-order bits of a release: what floating-point noise reveals in addition to its value.

The theory of noise is about real numbers, but a computer adds floats.  Three facts then reveal the
private number under the noise.  Floats near 0 are spaced more finely than those near 1, so the
lowest bit of the sum depends on the number.  If the noise lies on a coarse grid, the bits below
that grid are those of the number.  And noise computed from 53 random bits reaches only some floats,
which differ from number to number.

Reference: Mironov (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.randomness import Rng
from audits.attacks.front import noted
from audits.attacks.output_codes import Codes, audit_by_codes, check_arguments
from audits.claims.arguments import checked_pair, claimed_delta
from audits.claims.claims import ClaimLike
from audits.claims.findings import Finding
from audits.runs.release_functions import Draw, vectorised
from audits.values.tracebacks import without_values
from mechanisms.base.mechanism import Mechanism

NO_BIT = 2000  # stands for zero; every other float has its lowest bit from 2^-1074 to 2^1023
FINEST_GRID, COARSEST_GRID = -30, 20  # grids of noise that are tried, as powers of 2
MAX_NUMBERS = 8  # coordinates of one output that are tested, at most
# Noise is taken for numpy's Laplace noise if that can reach more than REACHED_SHARE of the outputs
# of PILOT_RUNS runs.  It would reach all of them, but for a few that another logarithm rounds
# otherwise; see `reachable`.
PILOT_RUNS, REACHED_SHARE = 50, 0.9


def lowest_bit(x: NDArray[Any]) -> NDArray[np.int64]:
    """The largest k such that the float is an integer multiple of 2^k, elementwise."""
    # |x| = significand 2^(exponent - 53), with a whole number of at most 53 bits.
    fraction, exponent = np.frexp(np.asarray(x, dtype=float))
    significand = np.abs(np.ldexp(np.nan_to_num(fraction), 53)).astype(np.int64)
    # ``n & -n`` is the lowest set bit of n: a power of two, which is exact as a float.  `np.frexp`
    # writes 2^b as 1/2 times 2^(b + 1).
    lowest = np.frexp((significand & -significand).astype(float))[1].astype(np.int64) - 1
    return np.where(significand == 0, NO_BIT, exponent.astype(np.int64) - 53 + lowest)


def noise_grid(x: Array, value: float) -> NDArray[np.int64]:
    """The largest k such that noise on the grid 2^k, added to ``value``, rounds to each float.

    k runs from -30 to 20.  The answer is `FINEST_GRID` - 1 if every grid is too coarse, and
    `NO_BIT` if no noise was added.
    """
    # The points of a grid are also points of every finer one.  So a grid is tried only for the
    # floats that the grid before it, of half its step, reached.
    grids = np.full(x.size, FINEST_GRID - 1, dtype=np.int64)
    reached = np.flatnonzero(np.isfinite(x))
    for k in range(FINEST_GRID, COARSEST_GRID + 1):
        noise = np.ldexp(np.rint(np.ldexp(x[reached] - value, -k)), k)  # rounded to the grid 2^k
        reached = reached[value + noise == x[reached]]
        if reached.size == 0:
            break
        grids[reached] = k
    grids[x == value] = NO_BIT
    return grids


def reachable(x: Array, value: float, scale: float) -> NDArray[np.bool_]:
    """Whether ``value + numpy's Laplace`` from 53 random bits can round to each float.

    The noise is ``scale * log(2u)`` below u = 1/2 and ``-scale * log((2 - u) - u)`` above, where
    u is a multiple of 2^-53 and ``2 - u`` rounds to one of 2^-52.  So the noise is scale times the
    log of a multiple of 2^-52 below, and -scale times that of one of 2^-53 above.  Only the few
    multiples nearest to ``e^(-|x - value| / scale)`` could have made the float x; five are tried.
    (numpy's logarithm and C's differ in the last bit once in 300 times.)
    """
    away = x - value
    bits = np.where(away < 0, 52, 53)  # the multiples are of 2^-bits
    centre = np.rint(np.ldexp(np.exp(-np.abs(away) / scale), bits))
    is_reachable = np.zeros(x.size, dtype=bool)
    for step in range(-2, 3):
        multiple = np.ldexp(np.clip(centre + step, 1.0, np.ldexp(1.0, bits)), -bits)
        is_reachable |= value + np.copysign(scale * np.log(multiple), away) == x
    return is_reachable


BITS_ALONE = "only low bits were looked at; audit looks at whole outputs"


@without_values
def audit_bits(
    release: Mechanism | Callable[..., Any],
    pair: tuple[Any, Any] | None = None,
    claim: ClaimLike | None = None,
    runs: int = 20_000,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Finding:
    """Try to falsify a claim by the low-order bits of released numbers.

    Pilot runs choose the most informative of these events, which the other runs test: the lowest
    set bit, the grid of the noise as seen from either value, and for a pure claim whether Laplace
    noise of its scale can reach the float.

    Parameters
    ----------
    release : Mechanism or callable
        A release of numbers, as for `audit`.
    pair : tuple of two values, optional
        Two neighbouring numbers or vectors; None takes the mechanism's worst pair.
    claim : Loss, Budget, float or (float, float), optional
        What is claimed, as for `audit`; None takes the mechanism's own loss.
    runs : int, optional
        Number of draws, at least 10; an eighth of them are pilot runs.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.

    Returns
    -------
    Finding
        The outcome, and a lower bound on epsilon, rounded down.

    Raises
    ------
    ParameterError
        If the pair or the outputs are not numbers, or an argument is out of its range.

    References
    ----------
    Mironov (2012).

    Examples
    --------
    >>> from audits import audit_bits
    >>> from mechanisms import DiscreteLaplace, Laplace
    >>> floats = Laplace(scale=1.0, arithmetic="idealised")
    >>> audit_bits(floats, (0.0, 1.0), runs=2000, rng=0).outcome.name
    'FALSIFIED'
    >>> audit_bits(DiscreteLaplace(scale=1.0), (0, 1), runs=2000, rng=0).outcome.name
    'SURVIVED'
    """
    if isinstance(release, Mechanism):
        pair = release.worst_pair() if pair is None else pair
        claim = release.loss if claim is None else claim
        draw: Draw = release.release
    else:
        draw, pair = vectorised(release), checked_pair(pair)
    first_vector, second_vector = _pair_as_vectors(pair)
    checked_loss = check_arguments(runs, confidence, claim)
    scale = _laplace_scale(draw, pair, checked_loss)
    # Values of different lengths have no coordinates to compare noise with: of their outputs only
    # the lowest bit of the first number is tested.
    same_length = first_vector.size == second_vector.size
    width = min(first_vector.size, MAX_NUMBERS) if same_length else 1
    kinds = ["the lowest bit"]
    if same_length:
        kinds += ["the grid of noise on the first", "the grid of noise on the second"]
    if scale is not None:
        kinds.append("which value Laplace noise reaches it from")

    def coded(value: Any, source: np.random.Generator, size: int) -> Codes:
        """Codes of ``size`` outputs: a row for each, a column for each coordinate and kind."""
        numbers = _as_rows(draw(value, source, size), size)[:, :MAX_NUMBERS]
        columns = []
        with np.errstate(over="ignore", invalid="ignore"):  # numbers may be arbitrarily large
            for j in range(width):
                x = numbers[:, min(j, numbers.shape[1] - 1)]
                columns.append(lowest_bit(x))
                if same_length:
                    columns += [noise_grid(x, first_vector[j]), noise_grid(x, second_vector[j])]
                if scale is not None:
                    # 0: from neither value, 1: from the first, 2: from the second, 3: from both
                    from_first, from_second = (
                        reachable(x, first_vector[j], scale),
                        reachable(x, second_vector[j], scale),
                    )
                    columns.append(from_first.astype(np.int64) + 2 * from_second)
        return np.stack(columns, axis=1)

    names = [kind if width == 1 else f"{kind}, number {j}" for j in range(width) for kind in kinds]
    finding = audit_by_codes(coded, names, pair, checked_loss, runs, confidence, rng=rng)
    return noted(finding, release, pair, events=BITS_ALONE, bits=True)


def _pair_as_vectors(pair: Any) -> tuple[Array, Array]:
    """Both values of a pair as vectors of floats; raises `ParameterError` for other values."""
    try:
        first_vector, second_vector = (
            np.atleast_1d(np.asarray(value, dtype=float)).ravel() for value in pair
        )
    except (TypeError, ValueError) as error:
        allowed = "two neighbouring numbers or vectors"
        raise ParameterError("pair", "other values", allowed) from error
    return first_vector, second_vector


def _laplace_scale(draw: Draw, pair: Any, claim: Loss | None) -> float | None:
    """The scale of Laplace noise that a pure claim about two numbers requires.

    That is their distance over the claimed epsilon.  It is None for other claims and values, and if
    a few runs show another kind of noise.
    """
    first_vector, second_vector = _pair_as_vectors(pair)
    if (
        claim is None
        or first_vector.size != 1
        or second_vector.size != 1
        or claimed_delta(claim) > 0
    ):
        return None
    distance, epsilon = abs(float(first_vector[0] - second_vector[0])), claim.epsilon_at(0.0)
    scale = distance / epsilon if 0 < epsilon < np.inf else 0.0
    source = np.random.default_rng(0)  # only identifies the kind of noise; not part of the test
    is_laplace = scale > 0 and all(
        np.mean(
            reachable(_as_rows(draw(value, source, PILOT_RUNS), PILOT_RUNS)[:, 0], number, scale)
        )
        > REACHED_SHARE
        for value, number in zip(
            pair, (float(first_vector[0]), float(second_vector[0])), strict=True
        )
    )
    return scale if is_laplace else None


def _as_rows(output: Any, size: int) -> Array:
    """Outputs of ``size`` runs as floats, a row for each run."""
    array = np.asarray(output)
    if array.dtype.kind not in "biuf":
        raise ParameterError("release", f"outputs of type {array.dtype}", "a release of numbers")
    return array.astype(float).reshape(size, -1) if size else np.empty((0, 1))
