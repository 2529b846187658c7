# fmt: off
"""Mechanisms: what each claims to cost, proved on balls from the definition of its density.

A claim is plain numbers: kind, parameters, integers that exact noise is drawn from, densities and a
profile.  Proved is, at each epsilon, that delta of the worst pair is at most what is claimed, and
the claim at most (1 + 2^-30) times delta at epsilon - 2^-30.
"""

from functools import reduce
from itertools import pairwise
from math import comb, inf
from types import SimpleNamespace
from typing import Any

from flint import arb, ctx, fmpq, fmpz

Law = tuple[Any, Any]  # both ends of delta at an epsilon; whether an output has log-densities
SLACK, WORDS = fmpq(1, 2**30), 2**63

def check(claim: dict[str, Any]) -> tuple[str, str]:
    """Return PROVED, PROVED UPPER or NOT PROVED, and what is not proved."""
    with ctx.workprec(192):
        kind, params, gap = claim["kind"], exact(claim["parameters"]), ""
        for table in claim["tables"]:
            if not adds_up(table["table"], exact(table)):
                return "NOT PROVED", f"the integers of {table['table']} do not add up"
        if not (law := (noise if hasattr(params, "drawn_scale") else listed)(kind, params)):
            return "NOT PROVED", f"the kind {kind} has no proof here"
        delta, has_densities = law
        for output, *logs in claim["densities"]:
            if not has_densities(output, *logs):
                return "NOT PROVED", f"the density of the output {output} is another"
        for epsilon, claimed in claim["profile"]:
            if not (epsilon >= 0 and delta(q(epsilon))[1] <= arb(claimed)):
                return "NOT PROVED", f"delta is above {claimed:.9g} at epsilon = {epsilon:.9g}"
            if not arb(claimed) <= delta(q(epsilon) - SLACK)[0] * (1 + SLACK):
                gap = f"delta is not shown to be {claimed:.9g} at epsilon = {epsilon:.9g}"
    return ("PROVED UPPER" if gap else "PROVED"), gap

def q(x: Any) -> Any:
    return fmpq(*x.as_integer_ratio())

def exp(x: Any) -> Any:
    return arb(x).exp()

def exact(numbers: dict[str, Any]) -> Any:  # floats as the fractions they are
    return SimpleNamespace(**{k: q(x) if isinstance(x, float) else x for k, x in numbers.items()})

def is_log_of(log_value: float, exact_value: Any) -> bool:
    if log_value == -inf:
        return bool(exact_value == 0)
    return bool(abs(arb(log_value) - arb(exact_value).log()) < SLACK)

def swapped(m: Any, p: Any, r: Any, *alike: Any, densities: Any = ()) -> Law:
    # m outcomes have p against r, as many r against p, others are alike
    densities = densities or [(p, r), (r, p), *((c, c) for c in alike)]
    return (lambda e: (m * sum((a - exp(e) * b).max(arb(0)) for a, b in ((p, r), (r, p))),) * 2,
            lambda _, *logs: any(all(map(is_log_of, logs, pair)) for pair in densities))

def added(params: Any, delta: Any, density: Any) -> Law:
    step = params.step
    centres = [(q(v) / step + fmpq(1, 2)).floor() * step if step else q(v) for v in params.values]
    return delta, lambda x, *logs: all(
        map(is_log_of, logs, [density(abs(q(x) - v)) for v in centres]))

def events(cdf: Any, best: Any, g: Any, low: Any, high: Any) -> Any:
    # F(t) - e^eps F(t - distance): at a point of the grid near the best t, and at the best
    def at(move: Any, e: Any, grid: Any) -> Any:
        t = best(move, e) if move else None
        if grid and t is not None:
            t = ((t if isinstance(t, fmpq) else t.mid().fmpq()) / grid).floor() * grid
        return arb(0) if t is None else (cdf(t) - exp(e) * cdf(t - move)).max(arb(0))
    return lambda e: (at(low, e, g), at(high, e, 0))

def geometric(w: Any, steps: Any, e: Any) -> Any:
    # of integers in proportion to r^|k|, r = e^{-1/w}, N steps apart: the event "at most m" has
    # 1 - (r^{m+1} + e^eps r^{N-m}) / (1 + r), which is concave in m
    steps, best = int(steps), int(((steps - 1 - e * w) / 2).floor())
    events = range(max(best - 1, 0), min(best + 3, steps)) if e * w < steps else ()
    missed = [(exp(-(m + 1) / w) + exp(e - (steps - m) / w)) / (1 + exp(-1 / w)) for m in events]
    return reduce(arb.max, [1 - mass for mass in missed], arb(0))

def two_sided(x: Any) -> Any:  # the distribution function of Laplace noise of scale 1
    lower_half, upper_half = exp(x) / 2, 1 - exp(-x) / 2
    return lower_half if x < 0 else upper_half if x >= 0 else lower_half.union(upper_half)

def normals(params: Any, e: Any, g: Any, low: Any, high: Any) -> tuple[Any, Any]:
    def phi(x: Any) -> Any:
        return (-arb(x) / arb(2).sqrt()).erfc() / 2
    def profile(mu: Any) -> Any:
        return phi(mu / 2 - arb(e) / mu) - exp(e) * phi(-mu / 2 - arb(e) / mu)
    if not g:
        return (profile(high),) * 2
    # Above: docs/proofs/discrete.md, 3, tau = 2.  Below: the event "at most t", its sums by
    # integrals; beyond 0, where terms fall, by one term less.
    d, t = params.dimension or 1, ((low / 2 - e / low) / g).floor() * g if low else -1 / g
    mu = (params.sensitivity / params.drawn_scale + g * arb(d).sqrt()) / (1 - 4 * g * g)
    below = phi(t) / (1 + 5 * exp(-2 * (arb.pi() / g) ** 2)) - (g if t > 0 else 0)
    return below - exp(e) * phi(t + g - low), profile(mu) * (1 + 5 * exp(-8 * arb.pi() ** 2)) ** d

def noise(kind: str, params: Any) -> Any:
    # In drawn scales: a step of the grid, the least distance on it and the greatest.  Rounding
    # moves values apart by a step at most in each coordinate (docs/proofs/discrete.md).
    s, c = params.drawn_scale, 2 - getattr(params, "monotone", True)
    d = getattr(params, "dimension", 1) or 1
    g, high = params.step / s, c * (params.sensitivity + d * params.step) / s
    low = c * (params.sensitivity / params.step).floor() * g if params.step else high
    laplace = two_sided, lambda m, e: (m - e) / 2 if e < m else None, g, low, high
    match kind:
        case "DiscreteGaussian":  # k in proportion to e^{-k^2 / 2s^2}; 2^-1800 is not listed
            steps, reach, unlisted = int(params.sensitivity), int(51 * s) + 60, arb(0, 2.0**-1000)
            term = [exp(-fmpq(k * k) / (2 * s * s)) for k in range(reach + 2 * steps + 1)]
            total, support = 2 * sum(term[1:], arb(0)) + 1 + unlisted, range(-reach, reach + steps)
            masses = [(term[abs(k)] / total, term[abs(k - steps)] / total) for k in support]
            delta = lambda e: (
                sum(((a - exp(e) * b).max(arb(0)) for a, b in masses), unlisted),) * 2
            return added(params, delta, lambda x: exp(-((x / s) ** 2) / 2) / total)
        case "DiscreteLaplace":
            return added(params, lambda e: (geometric(s, params.sensitivity, e),) * 2,
                         lambda x: exp(-x / s) * arb(1 / (2 * s)).tanh())
        case "Laplace":
            ends = lambda e: tuple(geometric(1 / g, (far / g).floor(), e) for far in (low, high))
            return added(params, ends if g else events(*laplace), lambda x: exp(-x / s) / (2 * s))
        case "TruncatedLaplace":  # given that it is at most the reach; on a grid, its cells
            r = params.reach_steps * g if g else params.reach
            mass = 1 - exp(-r)
            cdf = lambda x: (two_sided(x) - exp(-r) / 2) / mass if abs(x) < r else arb(x > 0)
            best = lambda m, e: m - r if e >= m else min(max((m - e) / 2, m - r), r)
            return added(params, events(cdf, best, g, low, high), lambda x: (
                exp(-x / s) / (2 * s * mass) if x <= r * s else arb(0)))
        case "Gaussian":
            delta, root = lambda e: normals(params, e, g, low, high), s * (2 * arb.pi()).sqrt()
            return added(params, delta, lambda x: exp(-((x / s) ** 2) / 2) / root)
        case "Staircase":
            u = fmpq(params.top, params.stair)
            b = exp(-1 / params.width if g else -params.sensitivity / params.scale)
            a = (1 - b) / (2 * s * (u + b * (1 - u)))
            # left of both values; between them where one is on its upper part alone
            p = fmpq(1, 2) + a * min(u, 1 - u) * s
            delta, _ = swapped(1, p, p * b)
            return added(params, delta, lambda x: a * b ** int((x / s - u).floor() + 1))
        case "Exponential" | "NoisyMax" | "LazyExponential" | "PermuteAndFlip":
            # the worst odds are (e^{r - t} - 1) / (1 - e^-t) with t = (eps + r) / 2
            gap = lambda r, e: None if e >= r else (
                arb((r - e) / 2).expm1() / (1 - exp(-(e + r) / 2))).log()
            odds = lambda x: 1 / (1 + exp(-x)), gap, g, low, high
            law = laplace if kind == "PermuteAndFlip" else odds
            gaps = [(q(a) - q(b)) / s for a, b in params.values]
            return events(*law), lambda x, *logs: all(
                map(is_log_of, logs, [law[0](-gap if x else gap) for gap in gaps]))

def listed(kind: str, params: Any) -> Any:
    k, truth = getattr(params, "k", 2), getattr(params, "keep", 1)
    lie = 1 - truth
    match kind:
        case "RandomizedResponse" | "BinaryLabel":
            return swapped(1, truth, lie / (k - 1), lie / (k - 1))
        case "HemisphereL2":  # over the uniform density
            return swapped(fmpq(1, 2), 2 * truth, 2 * lie)
        case "HadamardResponse":
            m = fmpq(1 << k.bit_length(), 4)
            return swapped(m, truth / (2 * m), lie / (2 * m), truth / (2 * m), lie / (2 * m))
        case "CubeLinf":
            d = params.dimension
            halves = comb(d, d // 2) * (1 - d % 2)
            m, total = (2**d - halves) // 2, (2**d - halves) // 2 + halves * lie
            return swapped(m, truth / total, lie / total, lie / total)
        case "SubsetSelection":
            a, b = truth / comb(k - 1, params.size - 1), lie / comb(k - 1, params.size)
            return swapped(comb(k - 2, params.size - 1), a, b, a, b)
        case "PiecewiseUniform":  # two pieces do not meet; the cells of the rest are alike
            a, b = truth / (params.piece * params.unit), lie / (params.rest * params.unit)
            return swapped(params.piece * params.unit, a, b, b)
        case "UnaryEncoding":  # two labels have different bits; the others show c ones
            p, r, z, y = arb(params.p), arb(params.q), 1 - arb(params.p), 1 - arb(params.q)
            pairs = (p * y, z * r), (z * r, p * y), (p * r, p * r), (z * y, z * y)
            other_bits = [r**c * y ** (k - 2 - c) for c in range(k - 1)]
            densities = [(f * a, f * b) for f in other_bits for a, b in pairs]
            return swapped(1, p * y, z * r, densities=densities)
        case "LocalHashing":  # two labels are hashed to uniform different residues of a prime
            prime = next(p for p in range(k, 2 * k + 2) if fmpz(p).is_prime())
            (quotient, remainder), count = divmod(prime, params.buckets), prime * (prime - 1)
            alike = quotient * (
                remainder * (quotient + 1) + (params.buckets - remainder) * (quotient - 1))
            a, b = truth / count, lie / ((params.buckets - 1) * count)
            return swapped(count - alike, a, b, a, b)
        case "PrivUnit":  # a cap and its opposite; masses of exact directions err by n.error
            half, b = fmpq(1, 2), fmpq(params.dimension - 1, 2)
            mass = (1 - arb(params.height**2).beta_lower(half, b, True)) / 2
            share = params.cap_share if params.error else (truth - mass) / (1 - mass)
            cap, far = (1 - share) * (mass + arb(0, float(params.error))), 1 - share
            densities = [(far + share / mass, far), (far, far + share / mass), (far, far)]
            return swapped(1, share + cap, cap, densities=densities)
        case "PartitionSelection":  # of k people, w_k of 2^63 words keep their key
            shares = [(arb(a) / WORDS, arb(b) / WORDS) for a, b in pairwise(params.words)]
            shares += [(1 - b, 1 - a) for a, b in shares]
            densities = [*shares, *((b, a) for a, b in shares)]
            return lambda e: (reduce(arb.max, [b - exp(e) * a for a, b in shares]),) * 2, (
                lambda _, *logs: any(all(map(is_log_of, logs, pair)) for pair in densities))

def adds_up(name: str, table: Any) -> bool:
    if name == "IntegerStaircase":  # the share of the first level, the most probable cells
        first_share = 1 / (1 + fmpq(table.stair, table.top) / arb(1 / table.width).expm1())
        return fmpq(*table.low) <= first_share <= fmpq(*table.high)
    if name == "WeightTable":
        top = q(max(table.scores))
        least_sizes = [table.height * exp((q(s) - top) / table.scale) for s in table.scores]
    else:  # blocks of integers; the last is the tail's, of 128 times its first probability
        starts = [fmpq(b << table.shift) for b in range(len(table.ends))]
        width, power = table.width, table.power
        least_sizes = [table.height * exp(-((x / width) ** power) / power) for x in starts]
        least_sizes[-1] *= 0 if table.reach is not None and starts[-1] > table.reach else 128
    blocks = zip(pairwise([0, *table.ends]), least_sizes, strict=True)
    return table.ends[-1] <= WORDS and all(end - start >= size for (start, end), size in blocks)
