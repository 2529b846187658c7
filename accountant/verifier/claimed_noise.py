"""The laws of mechanisms that add noise or choose by noisy scores: one function for each kind.

A mechanism claims what it costs in a table of numbers; the verifier compares the claim with the law
of the mechanism, which is computed here from the textbook's density in balls (`arb`), intervals
that contain the true number.  A law is used for the worst pair of two neighbouring values.

A function takes ``n``, the parameters of the claim by name, and the `Grid` of its values; it
returns delta of the worst pair and the density of outputs.  ``n.drawn_scale``, ``s`` below, is the
scale of the noise as it is drawn, and distances are measured in it.  On a grid the values of
two neighbours are rounded, which moves them apart by at most a step in each coordinate
(docs/proofs/discrete.md, 2).  So delta has two ends: that of the least distance on the grid, and
that of the greatest.  Exact noise is drawn by tables of integers, which are checked here too.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from flint import arb, fmpq

from .balls import exact
from .claimed_laws import (
    WORDS,
    DeltaEnds,
    Ends,
    Law,
    Parameters,
    exchanged_law,
    exp,
    fraction,
    hockey_stick,
    is_near,
)
from .loss_nodes import LAW_OF_SHARE
from .summed_noise import (
    LISTED_VARIANCE,
    gaussian_above,
    mass_of,
    pairs_of_masses,
    variance_of,
)


class Grid(NamedTuple):
    """The step of the grid of values, and how far two neighbours can be apart on it, in scales.

    ``step`` is 0 for values on the line, where both distances are the sensitivity.
    """

    step: fmpq
    least_distance: fmpq
    greatest_distance: fmpq


def grid_of(n: Parameters) -> Grid:
    """Return the grid of noise that is added to numbers."""
    coordinates = getattr(n, "dimension", 1) or 1
    step = n.step / n.drawn_scale
    greatest_distance = (n.sensitivity + coordinates * n.step) / n.drawn_scale
    least_distance = (n.sensitivity / n.step).floor() * step if n.step else greatest_distance
    return Grid(step, least_distance, greatest_distance)


def noise_law(n: Parameters, delta: DeltaEnds, density: Callable[[Any], Any]) -> Law:
    """Return the law of noise that is added to two values, which are rounded to its grid."""
    centres = [
        (fraction(v) / n.step + fmpq(1, 2)).floor() * n.step if n.step else fraction(v)
        for v in n.values
    ]

    def has_density(output: Any, *logs: float) -> bool:
        densities = [density(abs(fraction(output) - centre)) for centre in centres]
        return all(map(is_near, logs, densities))

    return Law(delta, has_density)


def half_line_delta(
    cdf: Callable[[Any], Any], best_event: Callable[[Any, Any], Any], grid: Grid
) -> DeltaEnds:
    """Return both ends of the greatest F(t) - e^eps F(t - distance) over t.

    F is the distribution function of log-concave noise, for which an event "at most t" is the best
    one (`shifted_less`).  ``best_event`` gives the best t, or None where delta is 0.  Any other t
    gives a lower bound: on a grid it is the point of the grid below the best t.
    """

    def gain(distance: Any, epsilon: Any, step: Any) -> arb:
        t = best_event(distance, epsilon) if distance else None
        if t is None:
            return arb(0)
        if step:
            t = ((t if isinstance(t, fmpq) else t.mid().fmpq()) / step).floor() * step
        return hockey_stick(cdf(t), cdf(t - distance), epsilon)

    return lambda epsilon: (
        gain(grid.least_distance, epsilon, grid.step),
        gain(grid.greatest_distance, epsilon, 0),
    )


def laplace_cdf(x: Any) -> arb:
    """Return the distribution function of Laplace noise of scale 1."""
    below, above = exp(x) / 2, 1 - exp(-x) / 2
    return below if x < 0 else above if x >= 0 else below.union(above)


def best_laplace_event(distance: Any, epsilon: Any) -> Any:
    """Return the t at which F(t) - e^eps F(t - distance) is greatest for Laplace noise."""
    return (distance - epsilon) / 2 if epsilon < distance else None


def geometric_delta(w: Any, steps: Any, epsilon: Any) -> arb:
    """Return delta of noise on integers in proportion to r^|k|, r = e^{-1/w}, N ``steps`` apart.

    Theorem (`geometric_noise`: docs/proofs/discrete.md, 2): the event "at most m" gives
    1 - (r^{m+1} + e^eps r^{N-m}) / (1 + r), and the best m gives delta.  This is concave in m, so
    the integers next to its maximum on the line are enough.
    """
    steps, best = int(steps), int(((steps - 1 - epsilon * w) / 2).floor())
    events = range(max(best - 1, 0), min(best + 3, steps)) if epsilon * w < steps else ()
    missed = [
        (exp(-(m + 1) / w) + exp(epsilon - (steps - m) / w)) / (1 + exp(-1 / w)) for m in events
    ]
    return reduce(arb.max, [1 - mass for mass in missed], arb(0))


def discrete_gaussian(n: Parameters, _grid: Grid) -> Law:
    """Integers in proportion to e^{-k^2 / (2 s^2)}: a sum over all but a mass of 2^-1800.

    What is beyond 51 s + 60 is at most e^{-51^2 / 2} of the rest, less than the radius 2^-1000 of
    the ball that stands for it.
    """
    s = n.drawn_scale
    shift, reach, not_listed = int(n.sensitivity), int(51 * s) + 60, arb(0, 2.0**-1000)
    terms = [exp(-fmpq(k * k) / (2 * s * s)) for k in range(reach + 2 * shift + 1)]
    total = 2 * sum(terms[1:], arb(0)) + 1 + not_listed
    masses = [
        (terms[abs(k)] / total, terms[abs(k - shift)] / total) for k in range(-reach, reach + shift)
    ]

    def delta(epsilon: Any) -> Ends:
        value = sum((hockey_stick(p, q, epsilon) for p, q in masses), not_listed)
        return value, value

    return noise_law(n, delta, lambda x: exp(-((x / s) ** 2) / 2) / total)


def skellam(n: Parameters, grid: Grid) -> Law:
    """Skellam noise on whole numbers or vectors."""
    return summed(Parameters(**vars(n), share="Skellam", survivors=1), grid)


def summed(n: Parameters, _grid: Grid) -> Law:
    """The sum of shares of integer noise: all outcomes; for vectors a Gaussian that costs more.

    Theorem (`summed_noise`: docs/proofs/summed_noise.md, 3), as in `summed_noise.gaussian_above`.
    What is not listed is between the sum of the listed masses and 1.
    """
    law = LAW_OF_SHARE[n.share]
    scale, terms = Fraction(int(n.drawn_scale.p), int(n.drawn_scale.q)), int(n.survivors)
    squared = int((n.sensitivity**2 * (1 + fmpq(1, 2**40))).floor())
    shift, is_listed = isqrt(squared), variance_of(scale, terms) <= LISTED_VARIANCE
    masses = pairs_of_masses(law, scale, terms, shift) if is_listed and shift else []
    not_listed = (1 - sum((p for p, _ in masses), arb(0))).max(arb(0)) if masses else arb(0)

    def delta(epsilon: Any) -> Ends:
        low = sum((hockey_stick(p, q, epsilon) for p, q in masses), arb(0))
        if masses and (n.dimension == 1 or squared == 1):
            return low, low + not_listed
        whole_square = shift**2 if n.dimension == 1 else squared
        square = n.sensitivity**2
        distance = (
            Fraction(whole_square) if whole_square else Fraction(int(square.p), int(square.q))
        )
        mu_squared = gaussian_above(law, scale, terms, distance)
        return low, gaussian_delta(exact(mu_squared).sqrt(), epsilon)

    return noise_law(n, delta, lambda x: mass_of(law, scale, terms, int(x)))


def discrete_laplace(n: Parameters, _grid: Grid) -> Law:
    """Integers in proportion to e^{-|k| / s}."""
    s = n.drawn_scale

    def delta(epsilon: Any) -> Ends:
        value = geometric_delta(s, n.sensitivity, epsilon)
        return value, value

    return noise_law(n, delta, lambda x: exp(-x / s) * arb(1 / (2 * s)).tanh())


def laplace(n: Parameters, grid: Grid) -> Law:
    """Laplace noise; on a grid it is an integer of the two-sided geometric law, times the step."""
    s = n.drawn_scale

    def delta_on_grid(epsilon: Any) -> Ends:
        cost_of_least, cost_of_greatest = (
            geometric_delta(1 / grid.step, (distance / grid.step).floor(), epsilon)
            for distance in (grid.least_distance, grid.greatest_distance)
        )
        return cost_of_least, cost_of_greatest

    delta = delta_on_grid if grid.step else half_line_delta(laplace_cdf, best_laplace_event, grid)
    return noise_law(n, delta, lambda x: exp(-x / s) / (2 * s))


def truncated_laplace(n: Parameters, grid: Grid) -> Law:
    """Laplace noise, given that its absolute value is at most the reach r.

    On a grid a point has the mass of its cell.
    """
    s = n.drawn_scale
    r = n.reach_steps * grid.step if grid.step else n.reach
    mass = 1 - exp(-r)

    def cdf(x: Any) -> arb:
        return (laplace_cdf(x) - exp(-r) / 2) / mass if abs(x) < r else arb(x > 0)

    def best_event(distance: Any, epsilon: Any) -> Any:
        if epsilon >= distance:  # delta is the mass that the other noise cannot reach
            return distance - r
        return min(max((distance - epsilon) / 2, distance - r), r)

    def density(x: Any) -> arb:
        return exp(-x / s) / (2 * s * mass) if x <= r * s else arb(0)

    return noise_law(n, half_line_delta(cdf, best_event, grid), density)


def gaussian(n: Parameters, grid: Grid) -> Law:
    """Gaussian noise: a formula; on a grid, bounds by continuous noise."""
    s = n.drawn_scale
    root = s * (2 * arb.pi()).sqrt()

    def delta(epsilon: Any) -> Ends:
        if grid.step:
            return gaussian_delta_on_grid(n, grid, epsilon)
        value = gaussian_delta(grid.greatest_distance, epsilon)
        return value, value

    return noise_law(n, delta, lambda x: exp(-((x / s) ** 2) / 2) / root)


def normal_cdf(x: Any) -> arb:
    """Return P(N(0, 1) <= x)."""
    return (-arb(x) / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu: Any, epsilon: Any) -> arb:
    """Return delta of N(mu, 1) against N(0, 1)."""
    near, far = normal_cdf(mu / 2 - arb(epsilon) / mu), normal_cdf(-mu / 2 - arb(epsilon) / mu)
    return near - exp(epsilon) * far


def gaussian_delta_on_grid(n: Parameters, grid: Grid, epsilon: Any) -> Ends:
    """Return both ends of delta of Gaussian noise on a grid of step g, in scales.

    Theorem (`narrower_gaussian`: docs/proofs/discrete.md, 3, with tau = 2 steps): in d coordinates
    it costs at most (1 + 5 e^{-8 pi^2})^d delta of a continuous Gaussian of variance 1 - 4 g^2.

    Theorems (`theta_constant`, `sums_by_integrals`): the masses of the event "at most t", below,
    are integrals but for a share of 5 e^{-2 pi^2 / g^2} and, beyond 0, where terms fall, one term.
    """
    g, low = grid.step, grid.least_distance
    coordinates = n.dimension or 1
    mu = (n.sensitivity / n.drawn_scale + g * arb(coordinates).sqrt()) / (1 - 4 * g * g)
    upper = gaussian_delta(mu, epsilon) * (1 + 5 * exp(-8 * arb.pi() ** 2)) ** coordinates
    # The best event of continuous noise; if the values are not apart at all, one of hardly any
    # mass.
    t = ((low / 2 - epsilon / low) / g).floor() * g if low else -1 / g
    p = normal_cdf(t) / (1 + 5 * exp(-2 * (arb.pi() / g) ** 2)) - (g if t > 0 else 0)
    return p - exp(epsilon) * normal_cdf(t + g - low), upper


def staircase(n: Parameters, grid: Grid) -> Law:
    """Staircase noise, whose density falls by the factor b from one stair to the next.

    Stairs are as long as the drawn scale s.  In each, the part u nearest to 0 has the higher of two
    levels, and a is the highest level of all.

    Theorem (`staircase_pair`: Geng & Viswanath 2014): for two values that are one stair apart the
    likelihood ratio is 1 / b, 1 or b; an output of ratio 1 / b has the probability p at the first.
    """
    s = n.drawn_scale
    u, b = fmpq(n.top, n.stair), exp(-1 / n.width if grid.step else -n.sensitivity / n.scale)
    a = (1 - b) / (2 * s * (u + b * (1 - u)))
    # Half of the mass is left of both values; the rest is between them, where only the
    # density of the first is on its higher level.
    p = fmpq(1, 2) + a * min(u, 1 - u) * s
    delta = exchanged_law(1, p, p * b).delta
    return noise_law(n, delta, lambda x: a * b ** int((x / s - u).floor() + 1))


def logistic_cdf(x: Any) -> arb:
    """Return the chance of the first of two candidates whose score is x scales above the other."""
    return 1 / (1 + exp(-x))


def worst_gap(distance: Any, epsilon: Any) -> Any:
    """Return the gap of the scores of two candidates that costs most.

    Theorem (`worst_odds`: Dong, Durfee & Rogers 2020, Lemma 3.2): with r the distance and
    t = (eps + r) / 2 it is ln((e^{r-t} - 1) / (1 - e^{-t})).
    """
    if epsilon >= distance:
        return None
    t = (epsilon + distance) / 2
    return (arb((distance - epsilon) / 2).expm1() / (1 - exp(-t))).log()


def selection(n: Parameters, grid: Grid) -> Law:
    """The exponential mechanism: each of two candidates in proportion to e^score."""
    return law_of_choice(n, grid, logistic_cdf, worst_gap)


def permute_and_flip(n: Parameters, grid: Grid) -> Law:
    """Permute-and-flip: of two candidates the best score under exponential noise.

    The difference of the two draws is Laplace noise.
    """
    return law_of_choice(n, grid, laplace_cdf, best_laplace_event)


def law_of_choice(
    n: Parameters,
    grid: Grid,
    chance: Callable[[Any], arb],
    best_event: Callable[[Any, Any], Any],
) -> Law:
    """Return the law of the choice between two candidates by the gap of their scores.

    ``chance`` is the probability of the first candidate at a gap.  Where scores are not monotone,
    one may rise as the other falls, which doubles the distance of the gaps on two neighbours.
    """
    scores_apart = 2 - n.monotone
    distances = Grid(
        grid.step, scores_apart * grid.least_distance, scores_apart * grid.greatest_distance
    )
    delta = half_line_delta(chance, best_event, distances)
    gaps = [(fraction(first) - fraction(second)) / n.drawn_scale for first, second in n.values]

    def has_density(output: Any, *logs: float) -> bool:
        return all(map(is_near, logs, [chance(-gap if output else gap) for gap in gaps]))

    return Law(delta, has_density)


NOISE: dict[str, Callable[[Parameters, Grid], Law]] = {
    "DiscreteGaussian": discrete_gaussian,
    "DiscreteLaplace": discrete_laplace,
    "Skellam": skellam,
    "SumOfClients": summed,
    "Laplace": laplace,
    "TruncatedLaplace": truncated_laplace,
    "Gaussian": gaussian,
    "Staircase": staircase,
    "Exponential": selection,
    "NoisyMax": selection,
    "LazyExponential": selection,
    "PermuteAndFlip": permute_and_flip,
}


def is_table_right(name: str, table: Parameters) -> bool:
    """Return whether the integer table that exact noise is drawn from is right.

    The range of every block must have at least as many words as `block_sizes` says, or, in a table
    of weights, as the weights say; all ranges together must fit into the 2^63 words.
    """
    if name == "IntegerStaircase":
        return is_staircase_share_right(table)
    if name == "PoissonNumbers":
        return are_poisson_words_right(table)
    if name == "WeightTable":
        best = fraction(max(table.scores))
        sizes = [
            table.height * exp((fraction(score) - best) / table.scale) for score in table.scores
        ]
    else:
        sizes = block_sizes(table)
    ranges = zip(pairwise([0, *table.ends]), sizes, strict=True)
    return table.ends[-1] <= WORDS and all(end - start >= size for (start, end), size in ranges)


def is_staircase_share_right(table: Parameters) -> bool:
    """Return whether the exact share of a staircase lies between the table's two fractions.

    It is the probability of the first level of the staircase.
    """
    share = 1 / (1 + fmpq(table.stair, table.top) / arb(1 / table.width).expm1())
    return bool(fmpq(*table.low) <= share <= fmpq(*table.high))


def are_poisson_words_right(table: Parameters) -> bool:
    """Return whether word k of the table is the first 64 binary digits of P(Poisson <= k), in all.

    The last word, all ones, stands for all further numbers: they are told apart by more digits.
    """
    mean = fmpq(*table.mean)
    below, term = arb(0), exp(-mean)
    for k, word in enumerate(table.words):
        below, term = below + term, term * mean / (k + 1)
        if not word <= below * 2**64 < word + 1:
            return False
    return bool(table.words[-1] == 2**64 - 1)


def block_sizes(table: Parameters) -> list[arb]:
    """Return how many words each block of integers needs, in proportion to its first probability.

    Theorem (`word_ranges`: docs/proofs/exact_selection.md, 2): words that are drawn again unless
    one lands in a range of at least c w_k, at its first c w_k, give k in proportion to w_k.  The
    last block is the tail's: 128 times its first probability, or none where it is out of reach.
    """
    starts = [fmpq(block << table.shift) for block in range(len(table.ends))]
    sizes = [
        table.height * exp(-((start / table.width) ** table.power) / table.power)
        for start in starts
    ]
    sizes[-1] *= 0 if table.reach is not None and starts[-1] > table.reach else 128
    return sizes
