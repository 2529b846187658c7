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
        kind, n, gap = claim["kind"], exact(claim["parameters"]), ""
        for table in claim["tables"]:
            if not adds_up(table["table"], exact(table)):
                return "NOT PROVED", f"the integers of {table['table']} do not add up"
        if not (law := (noise if hasattr(n, "drawn_scale") else listed)(kind, n)):
            return "NOT PROVED", f"the kind {kind} has no proof here"
        delta, has_density = law
        for output, *logs in claim["densities"]:
            if not has_density(output, *logs):
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

def near(log: float, true: Any) -> bool:
    return bool(true == 0 if log == -inf else abs(arb(log) - arb(true).log()) < SLACK)

def swapped(m: Any, p: Any, r: Any, *alike: Any, pairs: Any = ()) -> Law:
    # m outcomes have p against r, as many r against p, others are alike
    pairs = pairs or [(p, r), (r, p), *((c, c) for c in alike)]
    return (lambda e: (m * sum((a - exp(e) * b).max(arb(0)) for a, b in ((p, r), (r, p))),) * 2,
            lambda _, *logs: any(all(map(near, logs, pair)) for pair in pairs))

def added(n: Any, delta: Any, density: Any) -> Law:
    centres = [(q(v) / n.step + fmpq(1, 2)).floor() * n.step if n.step else q(v) for v in n.values]
    return delta, lambda x, *logs: all(map(near, logs, [density(abs(q(x) - v)) for v in centres]))

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
    below, above = exp(x) / 2, 1 - exp(-x) / 2
    return below if x < 0 else above if x >= 0 else below.union(above)

def normals(n: Any, e: Any, g: Any, low: Any, high: Any) -> tuple[Any, Any]:
    def phi(x: Any) -> Any:
        return (-arb(x) / arb(2).sqrt()).erfc() / 2
    def profile(mu: Any) -> Any:
        return phi(mu / 2 - arb(e) / mu) - exp(e) * phi(-mu / 2 - arb(e) / mu)
    if not g:
        return (profile(high),) * 2
    # Above: docs/proofs/discrete.md, 3, tau = 2.  Below: the event "at most t", its sums by
    # integrals; beyond 0, where terms fall, by one term less.
    d, t = n.dimension or 1, ((low / 2 - e / low) / g).floor() * g if low else -1 / g
    mu = (n.sensitivity / n.drawn_scale + g * arb(d).sqrt()) / (1 - 4 * g * g)
    below = phi(t) / (1 + 5 * exp(-2 * (arb.pi() / g) ** 2)) - (g if t > 0 else 0)
    return below - exp(e) * phi(t + g - low), profile(mu) * (1 + 5 * exp(-8 * arb.pi() ** 2)) ** d

def noise(kind: str, n: Any) -> Any:
    # In drawn scales: a step of the grid, the least distance on it and the greatest.  Rounding
    # moves values apart by a step at most in each coordinate (docs/proofs/discrete.md).
    s, c, d = n.drawn_scale, 2 - getattr(n, "monotone", True), getattr(n, "dimension", 1) or 1
    g, high = n.step / s, c * (n.sensitivity + d * n.step) / s
    low = c * (n.sensitivity / n.step).floor() * g if n.step else high
    laplace = two_sided, lambda m, e: (m - e) / 2 if e < m else None, g, low, high
    match kind:
        case "DiscreteGaussian":  # k in proportion to e^{-k^2 / 2s^2}; 2^-1800 is not listed
            steps, reach, tail = int(n.sensitivity), int(51 * s) + 60, arb(0, 2.0**-1000)
            term = [exp(-fmpq(k * k) / (2 * s * s)) for k in range(reach + 2 * steps + 1)]
            total, support = 2 * sum(term[1:], arb(0)) + 1 + tail, range(-reach, reach + steps)
            masses = [(term[abs(k)] / total, term[abs(k - steps)] / total) for k in support]
            delta = lambda e: (sum(((a - exp(e) * b).max(arb(0)) for a, b in masses), tail),) * 2
            return added(n, delta, lambda x: exp(-((x / s) ** 2) / 2) / total)
        case "DiscreteLaplace":
            return added(n, lambda e: (geometric(s, n.sensitivity, e),) * 2,
                         lambda x: exp(-x / s) * arb(1 / (2 * s)).tanh())
        case "Laplace":
            ends = lambda e: tuple(geometric(1 / g, (far / g).floor(), e) for far in (low, high))
            return added(n, ends if g else events(*laplace), lambda x: exp(-x / s) / (2 * s))
        case "TruncatedLaplace":  # given that it is at most the reach; on a grid, its cells
            r = n.reach_steps * g if g else n.reach
            mass = 1 - exp(-r)
            cdf = lambda x: (two_sided(x) - exp(-r) / 2) / mass if abs(x) < r else arb(x > 0)
            best = lambda m, e: m - r if e >= m else min(max((m - e) / 2, m - r), r)
            return added(n, events(cdf, best, g, low, high), lambda x: (
                exp(-x / s) / (2 * s * mass) if x <= r * s else arb(0)))
        case "Gaussian":
            delta, root = lambda e: normals(n, e, g, low, high), s * (2 * arb.pi()).sqrt()
            return added(n, delta, lambda x: exp(-((x / s) ** 2) / 2) / root)
        case "Staircase":
            u, b = fmpq(n.top, n.stair), exp(-1 / n.width if g else -n.sensitivity / n.scale)
            a = (1 - b) / (2 * s * (u + b * (1 - u)))
            # left of both values; between them where one is on its upper part alone
            p = fmpq(1, 2) + a * min(u, 1 - u) * s
            delta, _ = swapped(1, p, p * b)
            return added(n, delta, lambda x: a * b ** int((x / s - u).floor() + 1))
        case "Exponential" | "NoisyMax" | "LazyExponential" | "PermuteAndFlip":
            # the worst odds are (e^{r - t} - 1) / (1 - e^-t) with t = (eps + r) / 2
            gap = lambda r, e: None if e >= r else (
                arb((r - e) / 2).expm1() / (1 - exp(-(e + r) / 2))).log()
            odds = lambda x: 1 / (1 + exp(-x)), gap, g, low, high
            law = laplace if kind == "PermuteAndFlip" else odds
            gaps = [(q(a) - q(b)) / s for a, b in n.values]
            return events(*law), lambda x, *logs: all(
                map(near, logs, [law[0](-gap if x else gap) for gap in gaps]))

def listed(kind: str, n: Any) -> Any:
    k, truth, lie = getattr(n, "k", 2), getattr(n, "keep", 1), 1 - getattr(n, "keep", 1)
    match kind:
        case "RandomizedResponse" | "BinaryLabel":
            return swapped(1, truth, lie / (k - 1), lie / (k - 1))
        case "HemisphereL2":  # over the uniform density
            return swapped(fmpq(1, 2), 2 * truth, 2 * lie)
        case "HadamardResponse":
            m = fmpq(1 << k.bit_length(), 4)
            return swapped(m, truth / (2 * m), lie / (2 * m), truth / (2 * m), lie / (2 * m))
        case "CubeLinf":
            d, halves = n.dimension, comb(n.dimension, n.dimension // 2) * (1 - n.dimension % 2)
            m, total = (2**d - halves) // 2, (2**d - halves) // 2 + halves * lie
            return swapped(m, truth / total, lie / total, lie / total)
        case "SubsetSelection":
            a, b = truth / comb(k - 1, n.size - 1), lie / comb(k - 1, n.size)
            return swapped(comb(k - 2, n.size - 1), a, b, a, b)
        case "PiecewiseUniform":  # two pieces do not meet; the cells of the rest are alike
            a, b = truth / (n.piece * n.unit), lie / (n.rest * n.unit)
            return swapped(n.piece * n.unit, a, b, b)
        case "UnaryEncoding":  # two labels have different bits; the others show c ones
            p, r, z, y = arb(n.p), arb(n.q), 1 - arb(n.p), 1 - arb(n.q)
            pairs = (p * y, z * r), (z * r, p * y), (p * r, p * r), (z * y, z * y)
            bits = [r**c * y ** (k - 2 - c) for c in range(k - 1)]
            return swapped(1, p * y, z * r, pairs=[(f * a, f * b) for f in bits for a, b in pairs])
        case "LocalHashing":  # two labels are hashed to uniform different residues of a prime
            prime = next(p for p in range(k, 2 * k + 2) if fmpz(p).is_prime())
            (size, extra), count = divmod(prime, n.buckets), prime * (prime - 1)
            alike = extra * (size + 1) * size + (n.buckets - extra) * size * (size - 1)
            a, b = truth / count, lie / ((n.buckets - 1) * count)
            return swapped(count - alike, a, b, a, b)
        case "PrivUnit":  # a cap and its opposite; masses of exact directions err by n.error
            mass = (1 - arb(n.height**2).beta_lower(fmpq(1, 2), fmpq(n.dimension - 1, 2), True)) / 2
            share = n.cap_share if n.error else (truth - mass) / (1 - mass)
            cap, far = (1 - share) * (mass + arb(0, float(n.error))), 1 - share
            densities = [(far + share / mass, far), (far, far + share / mass), (far, far)]
            return swapped(1, share + cap, cap, pairs=densities)
        case "PartitionSelection":  # of k people, w_k of 2^63 words keep their key
            shares = [(arb(a) / WORDS, arb(b) / WORDS) for a, b in pairwise(n.words)]
            shares += [(1 - b, 1 - a) for a, b in shares]
            densities = [*shares, *((b, a) for a, b in shares)]
            return lambda e: (reduce(arb.max, [b - exp(e) * a for a, b in shares]),) * 2, (
                lambda _, *logs: any(all(map(near, logs, pair)) for pair in densities))

def adds_up(name: str, t: Any) -> bool:
    if name == "IntegerStaircase":  # the share of the first level, the most probable cells
        share = 1 / (1 + fmpq(t.stair, t.top) / arb(1 / t.width).expm1())
        return fmpq(*t.low) <= share <= fmpq(*t.high)
    if name == "WeightTable":
        sizes = [t.height * exp((q(s) - q(max(t.scores))) / t.scale) for s in t.scores]
    else:  # blocks of integers; the last is the tail's, of 128 times its first probability
        starts = [fmpq(b << t.shift) for b in range(len(t.ends))]
        sizes = [t.height * exp(-((x / t.width) ** t.power) / t.power) for x in starts]
        sizes[-1] *= 0 if t.reach is not None and starts[-1] > t.reach else 128
    blocks = zip(pairwise([0, *t.ends]), sizes, strict=True)
    return t.ends[-1] <= WORDS and all(end - start >= size for (start, end), size in blocks)
