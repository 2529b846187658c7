"""What a plan releases, from its file alone: exact fractions, no balls yet.

A plan becomes alternatives: users in different groups (`Parallel`) pay for different releases, and
delta is the greatest over them.  An alternative counts its releases, each a tuple:

    ("gaussian", mu^2)             N(mu, 1) against N(0, 1)
    ("laplace", m)                 Laplace(m, 1) against Laplace(0, 1)
    ("mixture", unit^2, P, Q)      sum w N(s unit, 1), (w, s) in P, against the same of Q
    ("sampled laplace", m, rate)   (1 - rate) Laplace(0, 1) + rate Laplace(m, 1), Laplace(0, 1)
    ("fixed sample", rate, one)    a uniform sample of fixed size of a symmetric release
    ("allocation", mu^2, steps)    N(mu, 1) in one secret step of some, against N(0, 1) in all
    ("response", epsilon, d)       (d, (1-d) e^eps, 1-d, 0) / .. against its mirror image
    ("pair", ((p, q), ...))        two finite distributions
    ("discrete laplace", scale, shift), ("discrete gaussian", scale, shift)
    ("sampled", rate, ones, both)  finite releases of one Poisson sample

P has the record (or one record), Q has not (or another one).
"""

import math
from collections import Counter
from fractions import Fraction

from .document import Fields, NoProof, ProofError, whole

MAX_COUNT, MAX_ALTERNATIVES = 10**15, 64
SYMMETRIC = {"gaussian", "laplace", "fixed sample", "response", "discrete laplace",
             "discrete gaussian"}  # fmt: skip


def numbers(value, *, decimal):
    """Return a plan with fractions for floats: their exact values, or the decimals as printed."""
    if isinstance(value, dict):
        return {key: numbers(one, decimal=decimal) for key, one in value.items()}
    if isinstance(value, list):
        return [numbers(one, decimal=decimal) for one in value]
    if isinstance(value, float):
        return Fraction(repr(value)) if decimal else Fraction(value)
    return value


def alternatives(value, depth=0):
    """Return what a user may pay for: a list of counters of releases."""
    node = Fields(value, "the plan")
    kind = node.take("kind")
    if depth > 50 or not isinstance(kind, str):
        raise ProofError("a plan is a table with a kind, nested at most 50 deep")
    node.name = kind[:40]
    count = whole(node.take("count", 1), 0, MAX_COUNT, f"count of {node.name}")
    if kind == "Sequential":
        found = [Counter()]
        for part in _list(node.take("parts")):
            some = alternatives(part, depth + 1)
            if len(found) * len(some) > MAX_ALTERNATIVES:
                raise NoProof("too many ways to be in parallel parts")
            found = [one + other for one in found for other in some] if len(some) > 1 else [
                _added(one, some[0]) for one in found]  # fmt: skip
    elif kind == "Parallel":
        if node.take("moves", []) or node.take("by", "index") not in ("index", "value"):
            raise NoProof("Parallel with moves has no proof here")
        found = [one for part in _list(node.take("parts")) for one in alternatives(part, depth + 1)]
        found = list({frozenset(one.items()): one for one in found}.values()) or [Counter()]
    elif kind in ("Repeat", "Stated", "OnePass"):
        found = alternatives(node.take("part"), depth + 1)
        node.take("relation", None), node.take("batches", None)
    elif kind == "Grouped":
        found = _grouped(node, depth)
    else:
        found = [Counter([one] if one else []) for one in [_release(kind, node, depth)]]
    node.done()
    found = [Counter({one: n * count for one, n in some.items() if n * count}) for some in found]
    if any(n > MAX_COUNT for some in found for n in some.values()):
        raise ProofError(f"more than {MAX_COUNT} releases")
    return found


def _added(one, other):
    one.update(other)
    return one


def _list(value):
    if not isinstance(value, list):
        raise ProofError("parts must be a list")
    return value


def _number(node, key, *default):
    value = node.take(key, *default)
    if type(value) not in (int, Fraction) or not abs(value) < 10**300:
        raise ProofError(f"{key} of {node.name} must be a number")
    return Fraction(value)


def _positive(node, key, *default):
    found = _number(node, key, *default)
    if found <= 0:
        raise ProofError(f"{key} of {node.name} must be above 0")
    return found


def _share(node, key):
    found = _number(node, key)
    if not 0 <= found <= 1:
        raise ProofError(f"{key} of {node.name} must be from 0 to 1")
    return found


def _noise(node, power):
    """Return sensitivity over scale of real noise; the exact sampler is wider by its grid."""
    scale, moves = _positive(node, "scale"), _positive(node, "sensitivity", 1)
    exact = node.take("arithmetic", "exact") == "exact"
    rows = whole(node.take("dimension", None) or 1, 1, 2**53, "dimension")
    if exact and scale**power * rows > moves**power * 2 ** (39 * power):
        raise NoProof(f"{node.name} on a grid coarser than its sensitivity has no proof here")
    return moves / scale


def _release(kind, node, depth):
    """Return one release, or None where nothing is released."""
    match kind:
        case "GaussianLoss" | "Gaussian":
            return "gaussian", (
                _positive(node, "mu") if kind == "GaussianLoss" else _noise(node, 2)
            ) ** 2
        case "LaplaceLoss" | "Laplace":
            return "laplace", _positive(node, "shift") if kind == "LaplaceLoss" else _noise(node, 1)
        case "PureLoss":
            return "response", _positive(node, "epsilon"), Fraction(0)
        case "ApproxLoss":
            return "response", abs(_number(node, "epsilon")), _share(node, "delta")
        case "DiscreteLaplaceLoss" | "DiscreteLaplace" | "DiscreteGaussian":
            key, default = ("sensitivity", [1]) if "Loss" not in kind else ("shift", [])
            shift, name = math.floor(_positive(node, key, *default)), "discrete laplace"
            if kind == "DiscreteGaussian":
                name = "discrete gaussian" if node.take("dimension", 1) == 1 else ""
            scale = _positive(node, "scale")
            if not name or not 1 <= shift <= 2047 or (name[-1] == "n" and scale > 54):
                raise NoProof(f"{kind} of such a scale, sensitivity or dimension has no proof here")
            return name, scale, shift
        case "RandomizedResponse":
            k, keep = whole(node.take("k"), 2, 2**53, "k"), _share(node, "keep")
            lie = (1 - keep) / (k - 1)
            return "pair", ((keep, lie), (lie, keep), (1 - keep - lie, 1 - keep - lie))
        case "PairLoss":
            sides = [[_number({"x": one} and Fields({"x": one}, "PairLoss"), "x")
                      for one in _list(node.take(key))] for key in "pq"]  # fmt: skip
            if len(sides[0]) != len(sides[1]) or min(map(min, sides)) < 0 or any(
                    abs(sum(side) - 1) > Fraction(1, 10**9) for side in sides):  # fmt: skip
                raise ProofError("p and q of PairLoss must be distributions of one length")
            return "pair", tuple(zip(*sides, strict=True))
        case "MixtureOfGaussians":
            scale = _positive(node, "scale")
            shifts, weights = (_list(node.take(key)) for key in ("shifts", "weights"))
            fields = [Fields({"w": w, "s": s}, kind) for w, s in zip(weights, shifts, strict=False)]
            side = [(_share(one, "w"), _number(one, "s") / scale) for one in fields]
            if len(shifts) != len(weights) or not side or min(s for _, s in side) < 0:
                raise NoProof(f"{kind} with such shifts and weights has no proof here")
            if abs(sum(w for w, _ in side) - 1) > Fraction(1, 10**9):
                raise ProofError("weights must sum to 1")
            return _mixture(Fraction(1), side, [(Fraction(1), Fraction(0))], node)
        case "PoissonSampled":
            return _sampled(node, depth)
        case "SampledWithoutReplacement":
            size, of = (whole(node.take(k), 0, 2**53, k) for k in ("sample", "population"))
            node.take("relation", None)
            part = _one_release(node.take("part"), depth)
            if size > of or (size and part[0] not in ("gaussian", "laplace")):
                raise NoProof(f"a sample of fixed size of {part[0]} has no proof here")
            return ("fixed sample", Fraction(size, of), part) if size else None
        case "RandomAllocation":
            steps = whole(node.take("steps"), 1, 10**7, "steps")
            mu, part = node.take("relation", None), _one_release(node.take("part"), depth)
            picks = whole(node.take("picks", 1), 1, steps, "picks")
            epochs = whole(node.take("epochs", 1), 1, 10**6, "epochs")
            if part[0] != "gaussian" or picks != 1 or epochs != 1 or node.take("added", False):
                raise NoProof("allocation of this part, or of several picks, has no proof here")
            return ("allocation", part[1], steps) if steps > 1 else part
    raise NoProof(f"the kind {node.name} has no proof here")


def _mixture(unit2, first, second, node):
    sides = tuple(tuple((w, s) for w, s in side if w) for side in (first, second))
    if node.take("added", False):
        sides = tuple(tuple((w, -s) for w, s in side) for side in reversed(sides))
    return "mixture", unit2, *sides


def _one_release(value, depth):
    """Return the one release of a part; several Gaussians are one."""
    found = alternatives(value, depth + 1)
    if len(found) == 1 and all(one[0] == "gaussian" for one in found[0]) and found[0]:
        return "gaussian", sum(one[1] * n for one, n in found[0].items())
    if len(found) != 1 or list(found[0].values()) != [1]:
        raise NoProof("a sample of several releases has no proof here")
    return next(iter(found[0]))


def _sampled(node, depth):
    rate, relation = _share(node, "rate"), node.take("relation", "add-remove")
    value = node.take("part")
    if isinstance(value, dict) and value.get("kind") == "Stated" and relation != "add-remove":
        raise NoProof("a sample of a part stated for replaced records has no proof here")
    inner = alternatives(value, depth + 1)
    if rate == 0 or inner == [Counter()]:
        node.take("added", None)
        return None
    if len(inner) == 1 and sum(inner[0].values()) <= 64 and {one[0] for one in inner[0]} <= {
            "response", "pair", "discrete laplace"}:  # fmt: skip
        added = node.take("added", False)
        if relation != "add-remove" or added:
            raise NoProof("this sample of finitely many outcomes has no proof here")
        return "sampled", rate, tuple(sorted(inner[0].elements(), key=repr))
    part, still = _one_release(value, depth), (1 - rate, Fraction(0))
    if part[0] == "gaussian":
        if rate == 1 and relation == "add-remove":
            node.take("added", None)
            return part
        other = [still, (rate, Fraction(-1))] if relation == "replace-one" else [
            (Fraction(1), Fraction(0))]  # fmt: skip
        return _mixture(part[1], [still, (rate, Fraction(1))], other, node)
    if part[0] == "laplace" and relation == "add-remove" and not node.take("added", False):
        return ("sampled laplace", part[1], rate) if rate < 1 else part
    if part[0] == "mixture" and relation == "add-remove" and part[3] == ((1, 0),):
        return _mixture(part[1], [still, *((rate * w, s) for w, s in part[2])], part[3], node)
    raise NoProof(f"a sample of {part[0]} has no proof here")


def _grouped(node, depth):
    """A group of k records: noise moves k times as far; of a Poisson sample Bin(j, rate) hit.

    Some j of the group may be in P alone, the other k - j in Q alone: each j is an alternative.
    """
    size = whole(node.take("size"), 1, 64, "size of a group")
    found = []
    for inner in alternatives(node.take("part"), depth + 1):
        if all(one[0] in ("gaussian", "laplace") for one in inner):
            moved = [(one[0], one[1] * size ** (2 if one[0] == "gaussian" else 1)) for one in inner]
            found.append(Counter(dict(zip(moved, inner.values(), strict=True))))
        elif all(one[0] == "mixture" and len(one[2]) == 2 and one[3] == ((1, 0),)
                 and one[2][0][1] == 0 for one in inner):  # fmt: skip
            for j in range(size + 1):
                found.append(Counter({("mixture", one[1],
                    _hits(j, one[2][1], 1), _hits(size - j, one[2][1], -1)): n
                    for one, n in inner.items()}))  # fmt: skip
        else:
            raise NoProof("a group of such releases has no proof here")
    return found


def _hits(records, side, sign):
    rate, shift = side
    return tuple((math.comb(records, i) * rate**i * (1 - rate) ** (records - i), sign * shift * i)
                 for i in range(records + 1))  # fmt: skip
