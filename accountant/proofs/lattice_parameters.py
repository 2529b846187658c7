"""The parameters of a proof that bounds delta of many releases by pairs on a lattice of losses.

Such a proof (`accountant.verifier.lattice_sums`) replaces each release by a pair whose losses are
multiples of a step h, and computes the law of the sum of all losses, with each mass p multiplied by
e^{aL}, and cut to a window around the losses that matter at one epsilon.  Its writer chooses the
order a, the step h, the number of points of the window (``size``), the working precision in bits,
and for each release with continuous noise a *rule*: the points at which its outputs are cut into
cells.

The choice is made in floats, from releases of few cells (`FloatRelease`).  Nothing here is trusted:
the checker computes its bounds anew, and a bad choice makes them wide or slow, never wrong.

A release is a tuple of its kind and its numbers, as in `accountant.verifier.releases`; P and Q are
its two laws, L = ln p/q is the loss, and n says how often it is released.  An atom is an outcome
with a positive mass of its own.  A set (`ANY_OF`) is a release of which one of several parts is
chosen each time; a part is again a list of releases.  Bounds: `docs/proofs/grid_pairs.md`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flint import ctx
from scipy.special import ndtri

from accountant.amplification.allocation.allocated_gaussian import AllocatedGaussian
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.proofs.allocation_parameters import allocation_entry
from accountant.proofs.no_method import NoMethod
from accountant.verifier.balls import Budget
from accountant.verifier.cells import cells
from accountant.verifier.releases import ANY_OF

# Numbers of nodes of a rule: that of a coarse release, and the largest of a proof.  The first is
# also the least of a proof, except for Laplace noise and bounded ranges.
FEW_NODES, MOST_NODES = 1_000, 40_000
NODES_EACH = 2.0  # nodes that a rule has in one step of the lattice, on average
LEAST_STEP = 1e-9  # least distance of the nodes of a rule that the checker accepts
STEPS = 2_000  # candidates for the step h that are tried for each distance between losses
# An atom that is this share of a step above a lattice point counts as on it: it is round-off.
ON_POINT = 1e-9
# What a shorter step costs in `_aligned`, over how much shorter than the longest step it is.  This
# decides between steps that suit the atoms equally well.
COST_OF_FINE_STEPS = 1e-6
COARSE_BITS = 160  # precision of the cells of which a release in floats is made
WIDER = 1e-6  # share of epsilon that the step of the lattice is meant to add to it
LEFT_OUT = 1e-9  # share of delta that the ends of each rule leave out, and the window of the sum
LEFT_OUT_OF_EPOCHS = 1e-8  # share of delta that the ends of an epoch's rule leave out
RIGHT = 15.0  # abscissa of the line of an epoch's integral, as a multiple of its saddle point
# Length of the Fourier transform of an epoch, in points: the most that the number of nodes asks for
MOST_LENGTH = 2**16
SLACK = 2.0**-46  # the ``slack`` of the proof, over the widest range of losses of a release
# A window has at least this many steps of the lattice, so that its step is not too coarse where
# epsilon allows a long one.
WINDOW_STEPS = 64
GUARD_BITS = 64  # bits of the proof's numbers beyond those that its sums and its tilt lose
# Orders a that are tried: the least; the largest is at least the second; their number.
LOWEST_ORDER, USUAL_HIGHEST_ORDER, ORDERS = 0.02, 500.0, 64
EXCESS_LIMIT = 3e4  # nats: an order whose window loses more digits than this is not taken
# In the estimate of the work a window with this many nats of excess takes twice as long.
EXCESS_OF_DOUBLE_WORK = 100
Items = list[tuple[Any, int]]
Entry = dict[str, Any]


@dataclass(frozen=True)
class FloatRelease:
    """A release of few cells in floats, which is released ``count`` times.

    Each cell has a ``loss``, a ``mass`` under P, and in ``apart`` the width of its losses: 0 for a
    single outcome, and for a cell whose least loss is not known.
    """

    loss: Array
    mass: Array
    apart: Array
    count: int

    def log_moment(self, a: Array) -> Array:
        """Return ``n ln E_P e^{aL}`` at each order a, where n is the count."""
        logs = np.log(self.mass) + np.multiply.outer(a, self.loss)
        log_moments: Array = self.count * logsumexp(logs, axis=-1)
        return log_moments

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest sum of the losses of all n releases."""
        return self.count * float(self.loss.min()), self.count * float(self.loss.max())

    @property
    def span(self) -> float:
        """The largest loss of one release less the least one."""
        return float(np.ptp(self.loss))

    def cell(self, a: float) -> float:
        """Return the root mean square of the widths of cells, under the law in `weights`."""
        return math.sqrt(float(np.sum(self.weights(a) * self.apart**2)))

    def atoms(self, a: float) -> list[tuple[float, float]]:
        """Return (depth, weight) of each single outcome: nats below the largest loss, and mass.

        The mass is that under the law in `weights`.
        """
        exact = self.apart == 0
        depths = float(self.loss.max()) - self.loss[exact]
        return list(zip(depths.tolist(), self.weights(a)[exact].tolist(), strict=True))

    def weights(self, a: float) -> Array:
        """Return the masses of the cells under the law in proportion to ``p e^{aL}``."""
        logs = np.log(self.mass) + a * self.loss
        weights: Array = np.exp(logs - logs.max())
        weights /= weights.sum()
        return weights


@dataclass(frozen=True, slots=True)
class _Greatest:
    """A set of which one part is chosen at each occurrence, seen as the worst of its parts."""

    parts: list[list[_Summand]]  # of each part, its releases and sets

    def log_moment(self, a: Array) -> Array:
        """Return, at each order a, the largest over the parts of a part's summed log-moments."""
        greatest: Array = np.max(
            [sum(release.log_moment(a) for release in part) + 0 * a for part in self.parts], axis=0
        )
        return greatest

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest sum of all losses, over all parts."""
        ends = [[release.ends for release in part] for part in self.parts]
        lows = (math.fsum(low for low, _ in part) for part in ends)
        highs = (math.fsum(high for _, high in part) for part in ends)
        return min(lows), max(highs)

    @property
    def span(self) -> float:
        """The width between these ends, with each release as often as in the whole plan."""
        low, high = self.ends
        return high - low


_Summand = FloatRelease | _Greatest


def lattice_entry(items: Items, back: bool, epsilon: float, delta: float) -> Entry:
    """Return the fields of the proof's entry for these releases with their counts.

    The entry bounds their delta at ``epsilon``, which is expected near ``delta``; with ``back`` P
    and Q are exchanged.
    """
    leaves = list(_leaves(items))
    if any(release[0] == "zcdp" for release, _ in leaves):
        raise NoMethod("a bound on moments has no lattice")
    coarse_rules = [lattice_rules(release, n, delta, FEW_NODES) for release, n in leaves]
    coarse = [
        coarse_release(release, n, back, rules)
        for (release, n), rules in zip(leaves, coarse_rules, strict=True)
    ]
    window = _window(_sums(items, iter(coarse)), epsilon, math.log(delta))
    # A release with a count is composed by about 2 log2(count) products of laws.
    products = sum(2 * n.bit_length() for _, n in items)
    are_listed = not any(coarse_rules)
    h = _lattice_step(leaves, coarse, window, epsilon, products, are_listed=are_listed)
    rules = []
    for (release, n), coarse_rule, float_release in zip(leaves, coarse_rules, coarse, strict=True):
        nodes = _node_count(release, h, coarse_rule, float_release.cell(window.saddle))
        rules += lattice_rules(release, n, delta, nodes)
    size, release_count = math.ceil(window.width / h) + 2, sum(n for _, n in leaves)
    bits = GUARD_BITS + math.log2(release_count * size) + window.excess / math.log(2)
    # The pair above a set comes from second differences of deltas, which lose digits.
    if len(leaves) > len(items):
        bits += GUARD_BITS - 2 * math.log2(h)
    return {
        "road": "lattice",
        "a": window.order.hex(),
        "h": h.hex(),
        "size": size,
        "slack": (SLACK * max((float_release.span for float_release in coarse), default=0.0)).hex(),
        "bits": max(128, 32 * math.ceil(bits / 32), *(rule.pop("bits", 0) for rule in rules)),
        "rules": rules,
    }


def _lattice_step(
    leaves: Items,
    coarse: list[FloatRelease],
    window: _Window,
    epsilon: float,
    products: int,
    *,
    are_listed: bool,
) -> float:
    """Return the step h of the lattice.

    It is at most what adds `WIDER` to epsilon, and at least what ``products`` products of laws can
    be checked with.  About there it is chosen so that distances between losses are multiples of it.
    ``are_listed`` says that the outcomes of all releases are listed.
    """
    saddle, release_count = window.saddle, sum(n for _, n in leaves)
    # The lattice adds about v = h^2 / 6 to the variance of each of n releases, and at the saddle s
    # that adds n v (s + 1) / 2 to epsilon: WIDER epsilon at this step.
    step_for_width = math.sqrt(12 * WIDER * epsilon / ((saddle + 1) * release_count))
    # The more products there are, the fewer points of the window can be checked in the time.
    most_points = 2**16 if products <= 20 else 2**15 if products <= 40 else 2**13
    h = max(min(step_for_width, window.width / WINDOW_STEPS), window.width / most_points)
    spans = [
        _span(release, float_release)
        for (release, _), float_release in zip(leaves, coarse, strict=True)
    ]
    positive_spans = [span for span in spans if span > 0]
    # If all outcomes are listed, and one release alone has a span, the span itself is the step.
    if not positive_spans:
        return h
    if are_listed and len(positive_spans) == 1:
        return positive_spans[0]
    # The cells of a greatest output have the width 0 because the checker does not compute the ends
    # of their losses: they are no atoms.
    kinds_and_releases = zip((release[0] for release, _ in leaves), coarse, strict=True)
    with_atoms = [float_release for kind, float_release in kinds_and_releases if kind != "greatest"]
    return _aligned(h, positive_spans, with_atoms, saddle)


def _leaves(items: Iterable[tuple[Any, int]]) -> Iterator[tuple[Any, int]]:
    """Yield each release with its count, those of all parts of a set too, in the checker's order.

    In a part of a set, the count is multiplied by that of the set.
    """
    for release, n in items:
        if release[0] == ANY_OF:
            for part in release[1]:
                yield from _leaves((inner, n * count) for inner, count in part)
        else:
            yield release, n


def _sums(items: Iterable[tuple[Any, int]], leaves: Iterator[FloatRelease]) -> list[_Summand]:
    """Return one summand for each item: the next of the ``leaves``, or a set with its own ones."""
    return [
        _Greatest([_sums(part, leaves) for part in release[1]])
        if release[0] == ANY_OF
        else next(leaves)
        for release, _ in items
    ]


def coarse_release(release: Any, count: int, back: bool, rules: list[Entry]) -> FloatRelease:
    """Return a release in floats, cut into cells by these rules as the checker would do it.

    Only the cells with positive masses and a largest loss remain.
    """
    Budget.remaining = math.inf  # the checker's limit of work does not apply here
    plain_rules = [{key: value for key, value in rule.items() if key != "bits"} for rule in rules]
    with ctx.workprec(COARSE_BITS):
        common = [
            cell
            for cell in cells(release, back, plain_rules)
            if cell.high is not None and cell.p > 0 and cell.q > 0
        ]
        widths = [
            0.0 if cell.low is None or cell.high is None else float(cell.high - cell.low)
            for cell in common
        ]
        values = np.array([(float((p / q).log()), float(p)) for p, q, *_ in common])
    positive = values[:, 1] > 0
    return FloatRelease(values[positive, 0], values[positive, 1], np.array(widths)[positive], count)


class _Window(NamedTuple):
    """The window of the sum's law, as `_window` chooses it."""

    order: float  # a, by which masses are multiplied by e^{aL}
    width: float  # nats
    excess: float  # nats: the window may leave out a share e^-excess of the law
    saddle: float  # the order of Chernoff's bound


def _window(summands: list[_Summand], epsilon: float, log_delta: float) -> _Window:
    """Return the window that is computed with the least work, of those of many orders.

    With K(a) the sum of all log-moments, delta is at most e^{C(a)}, where C(a) = K(a) - a epsilon +
    ln c_a and c_a = a^a / (a + 1)^{a + 1} (Chernoff).  The saddle is the order where C is least.

    A share lost of the law in proportion to p e^{aL} adds at most that share of e^{C(a)} to delta.
    So the window may leave out a share e^-excess of it, excess = C(a) - ln(LEFT_OUT delta).  The
    law has the mean K'(a), and a mass of at most e^{K(b) - K(a) - (b - a) t} above t for b > a, and
    below t for b < a: t is an end of the window where that is e^-excess.
    """
    # Of a Gaussian the saddle is about -2 ln delta / epsilon.
    largest = max(USUAL_HIGHEST_ORDER, min(-2 * log_delta / max(epsilon, 1e-9), 1e9))
    orders = np.geomspace(LOWEST_ORDER, largest, ORDERS)
    moments = sum((summand.log_moment(orders) for summand in summands), np.zeros(orders.size))
    slopes = np.gradient(moments, orders)
    log_shares = orders * np.log(orders) - (orders + 1) * np.log1p(orders)
    saddle = float(orders[np.nanargmin(moments - orders * epsilon + log_shares)])
    bottom, top = (math.fsum(summand.ends[side] for summand in summands) for side in (0, 1))
    span = max(summand.span for summand in summands)
    candidates = []
    for i, a in enumerate(orders):
        excess = float(moments[i] - a * epsilon + log_shares[i])
        excess -= log_delta + math.log(LEFT_OUT)
        if not math.isfinite(excess) or excess > EXCESS_LIMIT:
            continue
        log_gaps = moments - moments[i] + max(excess, 1.0)
        with np.errstate(divide="ignore"):
            ends = log_gaps / (orders - a)
        high = min(top, float(np.min(ends[a < orders], initial=np.inf)))
        low = max(bottom, float(np.max(ends[a > orders], initial=-np.inf)))
        mean = float(np.clip(slopes[i], low, high))
        width = min(max(2 * max(high - mean, mean - low), span), top - bottom)
        # Half of the window on either side of the mean must reach the further end; it is at least
        # as wide as one release.  A larger excess needs more digits, which take time as more
        # points do.
        work = width * (1 + max(excess, 0.0) / EXCESS_OF_DOUBLE_WORK)
        candidates.append((work, width, float(a), excess))
    if not candidates:
        raise NoMethod("losses too far apart for a lattice")
    _, width, a, excess = min(candidates)
    return _Window(a, 1.02 * max(width, 1e-6), excess, saddle)  # 2 % for the rounding to a lattice


def _aligned(max_step: float, spans: list[float], releases: list[FloatRelease], a: float) -> float:
    """Return a step from half of ``max_step`` on with atoms on its points, or just above them.

    The points are counted downwards from the largest loss of each release.  The cost of a step is
    the sum over all atoms of their weight under the law of order ``a``, times how far they lie
    above the next point below.  A small term prefers longer steps.
    """
    per_span = [span / (math.ceil(span / max_step) + np.arange(STEPS)) for span in spans]
    steps = np.concatenate([*per_span, np.geomspace(max_step / 2, max_step, STEPS)])
    costs = np.where(steps >= max_step / 2, 0.0, np.inf)
    for release in releases:
        for depth, weight in release.atoms(a):
            height = np.ceil(depth / steps - ON_POINT) * steps - depth
            costs += release.count * weight * np.maximum(height, 0.0)
    shortness = max_step - np.minimum(steps, max_step)
    return float(steps[np.argmin(costs + COST_OF_FINE_STEPS * shortness)])


def _span(release: Any, coarse: FloatRelease) -> float:
    """Return the distance between losses that is to be a multiple of the step; 0 for none.

    It is the range of losses for Laplace noise and for a bounded range, and the least distance
    between two losses where the outcomes are listed.
    """
    kind = release[1][0] if release[0] == "subset" else release[0]
    if kind in ("laplace", "sampled laplace"):
        return float(coarse.loss.max() - coarse.loss.min())
    if kind == "range":
        return float(release[1])
    if kind in ("response", "discrete laplace", "discrete gaussian", "pair", "sampled"):
        gaps = np.diff(np.unique(coarse.loss))
        # Narrower gaps are the round-off of equal losses.
        wide = gaps[gaps > 1e-9 * (1 + np.ptp(coarse.loss))]
        return float(wide.min()) if wide.size else 0.0
    return 0.0


def _node_count(release: Any, h: float, coarse_rules: list[Entry], cell: float) -> int:
    """Return how many nodes make the cells of a release short enough for the step h.

    ``cell`` is the mean width of its cells with the coarse rules; there are about `NODES_EACH`
    nodes a step, but for Laplace noise twice as many, and for a bounded range one.
    """
    if not coarse_rules:
        return 0
    if release[0] == "laplace":  # quick to compute
        return min(math.ceil(4 * NODES_EACH * float(release[1]) / h), MOST_NODES)
    if release[0] == "range":
        return math.ceil(float(release[1]) / h - 1e-9)
    nodes = int(coarse_rules[0]["count"])
    if release[0] == "greatest":  # its losses are those of the masses of its cells
        cell = math.sqrt(release[1]) * float.fromhex(coarse_rules[0]["step"])
    return min(max(math.ceil(NODES_EACH * cell * nodes / h), FEW_NODES), MOST_NODES)


def lattice_rules(release: Any, count: int, delta: float, nodes: int) -> list[Entry]:
    """Return the rules of a release, of this number of nodes: none where its outcomes are listed.

    A choice has one rule for each option.  Normal noise leaves out `LEFT_OUT` of delta at its ends,
    divided by the ``count`` of the release.
    """
    # deviations of a normal output beyond which the share of delta lies that may be left out
    reach = -float(ndtri(max(delta * LEFT_OUT / count, 1e-300)))
    match release:
        case ("choice", choices):
            low_end, high_end = _ends(choices[-1][1], reach)
            return [_rule(low_end, high_end, nodes) for _ in choices]
        case ("subset", inner):
            if inner[0] == "sampled":
                return []
            if "laplace" in inner[0]:
                return [_rule(0.0, float(inner[1]) / 2, nodes)]
            return [_rule(0.0, _ends(inner, reach)[1], nodes)]
        case ("range", e):
            return [_rule(0.0, float(e), nodes)]
        case ("laplace" | "sampled laplace", m, *_):
            return [_rule(0.0, float(m), nodes)]
        case ("greatest", mu_squared, s, _):
            # The greatest of many normals, of which one has a mean of up to (s + 1) mu: little lies
            # below -2, and that is one cell.
            far = math.sqrt(mu_squared) * (s + 1) + reach
            return [_rule(-2.0, far, nodes)]
        case ("gaussian" | "mixture", *_):
            return [_rule(*_ends(release, reach), nodes)]
        case ("allocation" | "sampled allocation", mu_squared, steps, *_):
            return [_allocation_rule(math.sqrt(mu_squared), steps, delta / count, nodes)]
    return []


def _ends(release: Any, reach: float) -> tuple[float, float]:
    """Return the outputs at which a rule ends: the extreme means of the normals, and the reach."""
    if release[0] == "gaussian":
        return -reach, math.sqrt(release[1]) + reach
    unit = math.sqrt(release[1])
    shifts = [unit * float(s) for side in release[2:] for _, s in side]
    return min(shifts) - reach, max(shifts) + reach


def _rule(first: float, last: float, nodes: int) -> Entry:
    """Return the fields of a rule with equal steps between two outputs."""
    step = max((last - first) / nodes, LEAST_STEP)
    return {"first": first.hex(), "step": step.hex(), "count": nodes}


@functools.lru_cache(maxsize=16)
def _allocation_rule_at(mu: float, steps: int, delta: float) -> tuple[float, float, Entry]:
    """Return the largest loss of an epoch's rule, -1 times its least, and the integral's fields.

    Beyond each of these losses lies a delta of `LEFT_OUT_OF_EPOCHS` times the given one.
    """
    loss = AllocatedGaussian(mu, steps)
    left_out = delta * LEFT_OUT_OF_EPOCHS
    high, low = loss.inverse_profile(left_out), loss.reversed.inverse_profile(left_out)
    # The line serves all epsilons up to ``high``, where delta is small: so it aims at a small one.
    entry = allocation_entry(
        mu * mu, steps, back=False, epsilon=high, delta=delta * 1e-7, multiple=RIGHT
    )
    return high, low, {key: value for key, value in entry.items() if key != "road"}


def _allocation_rule(mu: float, steps: int, delta: float, nodes: int) -> Entry:
    """Return the rule of an epoch: points K = steps e^L, equally far apart, of one transform.

    The nodes of its integral are h apart, so that the transform has the period 2 pi / h in K; it is
    computed at ``length`` points in a period, of which ``count`` lie in the range of the losses.
    """
    high, low, fields = _allocation_rule_at(mu, steps, delta)
    low_end, high_end = steps * math.exp(-low), steps * math.exp(high)
    period = 2 * math.pi / float.fromhex(fields["h"])
    min_length = max(fields["nodes"], min(nodes * period / (high_end - low_end), MOST_LENGTH))
    length = 2 ** math.ceil(math.log2(min_length))
    count = min(length, math.ceil((high_end - low_end) / period * length) + 1)
    return {**fields, "first": low_end.hex(), "length": length, "count": count}
