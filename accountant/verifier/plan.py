"""The file of a proof, and what its plan releases: exact fractions, no balls yet."""

import json
import re
from collections import Counter
from fractions import Fraction
from math import comb
from typing import Any, NamedTuple

HEX = re.compile(r"-?0x(0\.0|1\.[0-9a-f]{13})p[+-](0|[1-9]\d{0,2})")  # as float.hex writes it
class ProofError(ValueError):
    """The file is no proof: one line says what is wrong."""
class NoProof(Exception):
    """A step of the proof that failed, in a sentence."""
Verdict = NamedTuple("Verdict", [  # PROVED (both ends), PROVED UPPER, or NOT PROVED, and why
    ("word", str), ("reason", str), ("lower", float), ("upper", float), ("delta", float),
    ("plan", dict[str, Any]), ("digest", str)])
is_list = lambda x: isinstance(x, list)
def need(holds: Any, reason: str, error: type[Exception] = NoProof) -> None:  # go on only then
    if not holds:
        raise error(reason)
def parse(document: bytes) -> "Fields":
    """Return the content of a file, which must have the only bytes that say the same."""
    need(isinstance(document, bytes) and len(document) <= 2**20, "more than 1 MiB", ProofError)
    try:
        found = json.loads(document.decode("ascii"))
        text = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"no JSON of finite numbers: {str(error)[:99]}") from None
    need(f"{text}\n".encode() == document, "not canonical: sorted keys, no blanks", ProofError)
    return Fields(found, "the proof")
class Fields:
    """A table of which each field is asked for, with what it may hold."""
    def __init__(self, value: Any, name: str) -> None:
        need(isinstance(value, dict), f"{name} must be a table", ProofError)
        self.left, self.name, self.times = dict(value), name, 1
    def take(self, key: str, *default: Any, fits: Any = None) -> Any:  # a field that fits
        need(default or key in self.left, f"{self.name} has no field {key!r}", ProofError)
        found = self.left.pop(key, *default)
        need(not fits or fits(found), f"{key} of {self.name} is wrong or out of range", ProofError)
        return found
    def real(self, key: str, low: float, high: float) -> float:  # of the only hexadecimal form
        value = float.fromhex(self.take(key, fits=lambda x: HEX.fullmatch(str(x))))
        need(low <= value <= high, f"{key} of {self.name} is not in [{low}, {high}]", ProofError)
        return value
    def whole(self, key: str, low: int, high: int, *default: int) -> int:  # a whole number
        return int(self.take(key, *default, fits=lambda x: type(x) is int and low <= x <= high))
    def number(self, key: str, low: Any = 2.0**-999, high: Any = 2**999, *default: int) -> Fraction:
        fits = lambda x: type(x) in (int, Fraction) and low <= x <= high  # of the plan, exactly
        return Fraction(self.take(key, *default, fits=fits))
    def done(self) -> None:  # refuse fields that were not asked for
        need(not self.left, f"unknown {[*self.left, ''][0][:40]!r} in {self.name}", ProofError)
Ways = list[Counter[Any]]
KNOWN, BLANK = ("add-remove", "replace-one"), "zero-out"  # blank: a sample as without the record
NEIGHBOURS = {"RandomizedResponse": "local-replace", "SampledWithoutReplacement": KNOWN[1],
              "ShuffledEpoch": BLANK}
SAMPLES = "PoissonSampled", "RandomAllocation", "TruncatedPoisson"
ONE, STILL, ALONE = Fraction(1), ((Fraction(1), Fraction(0)),), (1, 0)
FINITE = {"response", "pair", "discrete laplace"}
def alternatives(plan: Any, *, decimal: bool) -> Ways:
    """Return what a user may pay for; ``decimal``: numbers are what is printed, not its float."""
    # A plan becomes alternatives (a user pays for one part of a `Parallel`; delta is the greatest
    # of all), each a count of releases, pairs (P, Q) of which P has the record and Q has not:
    #     ("gaussian", mu^2)             N(mu, 1), N(0, 1)
    #     ("laplace", m, 1, 1 if on a grid), ("sampled laplace", m, rate)    of Laplace(m, 1)
    #     ("mixture", unit^2, P, Q)      sum w N(s unit, 1) over the (w, s) of P, and of Q
    #     ("allocation", mu^2, steps)    N(mu, 1) in one secret step, N(0, 1) in others; none
    #     ("response", epsilon, d)       (d, (1-d)e/(1+e), (1-d)/(1+e), 0), e = e^epsilon; mirrored
    #     ("discrete laplace", scale, shift), ("discrete gaussian", scale, shift), ("pair", masses)
    #     ("sampled", rate, parts)       (1-rate) Q + rate P, Q of finite releases of one sample
    #     ("bound", above, below)    one above many pairs, one of them or None; others in lattice.py
    read, stated = Fraction if decimal else lambda text: Fraction(float(text)), set()
    def note(node: dict[str, Any]) -> dict[str, Any]:  # neighbours: one sort in a plan, or any
        added = node.get("by") == "value" or node.get("kind") in SAMPLES
        own = KNOWN[0] if added else NEIGHBOURS.get(str(node.get("kind")))
        stated.add(str(node.get("relation") or own).replace("label-", "local-"))
        return node
    tree = json.loads(json.dumps(plan), parse_float=read, object_hook=note)
    need(len(stated - {"None"}) < 2, "parts stated for different neighbours have no proof here")
    return _ways(tree, 0, ALONE)
def _ways(value: Any, depth: int, group: Any) -> Ways:  # group: records in P alone, in Q alone
    node, found = Fields(value, "the plan"), [Counter[Any]()]
    count, kind = node.whole("count", 0, 10**15, 1), node.take("kind", fits=lambda x: x == str(x))
    need(depth < 50, "a plan is nested at most 50 deep", ProofError)
    node.name = kind[:40]
    of = node.take("parts", fits=is_list) if kind in ("Sequential", "Parallel") else ()
    parts = [_ways(one, depth + 1, group) for one in of]
    if kind == "Sequential":
        for some in parts:
            need(max(len(found), sum(map(len, found)) / 1500) * len(some) <= 64, "too many ways")
            found = ([one.update(some[0]) or one for one in found] if len(some) == 1 else
                     [one + other for one in found for other in some])
    elif kind in ("Parallel", "Grouped") and group == ALONE and not node.take("moves", []):
        if kind == "Grouped":  # so many of its records are in P alone, the others in Q alone
            part, size = node.take("part"), node.whole("size", 1, 10**6)
            least = 0 if 1 < size <= 64 else size
            need(least or size**2 * len(str(part)) < 3e7, "too many ways of a group")
            parts = [_ways(part, depth + 1, (i, size - i)) for i in range(size, least - 1, -1)]
        node.take("by", None)
        each = {frozenset(one.items()): one for some in parts for one in some}
        found = list(each.values()) or found
    elif kind in ("Repeat", "Stated", "OnePass", "Claimed"):  # a claim is about a loss alone
        node.take("relation", None), node.take("batches", None), node.take("mechanism", None)
        found = _ways(node.take("loss" if kind == "Claimed" else "part"), depth + 1, group)
    elif one := _release(kind, node, depth + 1, group):
        found[0][one] = node.times
    node.done()
    few = all(n * count <= 10**18 for some in found for n in some.values())
    need(few and sum(map(len, found)) <= 10**5, "too many releases")
    return [Counter({one: n * count for one, n in some.items() if count}) for some in found]
def _release(kind: str, node: Fields, depth: int, group: Any) -> Any:  # or nothing
    number, size = node.number, sum(group)
    related: Any = lambda: str(node.take("relation", KNOWN[0], fits=(*KNOWN, BLANK).__contains__))
    part: Any = lambda: _one(_ways(node.take("part"), depth, group))
    sampled: Any = lambda rate, way: _sampled(rate, node.take("part"), way, depth, group)
    match kind:
        case "GaussianLoss":
            return "gaussian", (size * number("mu")) ** 2
        case "LaplaceLoss":
            return "laplace", size * number("shift"), ONE, 0
        case "Gaussian" | "Laplace":
            rows, ideal = node.take("dimension", 1) or 1, node.take("arithmetic", "") == "idealised"
            ratio = number("sensitivity", 0, 2**999, 1) / number("scale")
            power = 2 if kind == "Gaussian" else 1  # exact noise is wider by its grid's step
            fits = type(rows) is int and rows < (ratio * 2**39) ** power
            need(ratio and (fits or ideal), f"{kind} on a grid so coarse has no proof here")
            ratio *= size
            return ("laplace", ratio, ONE, int(not ideal)) if power == 1 else ("gaussian", ratio**2)
        case "PureLoss":
            pure = "response", (e := size * number("epsilon", 0)), 0 * ONE  # of a group: as Laplace
            return ("bound", pure, ("laplace", e, ONE, 0)) if size > 1 and e else pure
        case "BoundedRangeLoss":
            return "bound", ("range", e := size * number("epsilon", 0)), ("response", e / 2, e * 0)
        case "ZCDPLoss":
            rho, xi = size**2 * number("rho"), number("xi", 0, 2**999 * (size == 1), 0)
            return "bound", ("zcdp", rho, xi), ("gaussian", 2 * rho)
        case "PoissonSampled":
            return sampled(number("rate", 0, 1), related())
        case _ if size > 1:
            raise NoProof(f"a group of the kind {node.name} has no proof here")
        case "ApproxLoss":
            return "response", number("epsilon", 0), number("delta", 0, 1)
        case ("DiscreteLaplaceLoss" | "DiscreteLaplace" | "DiscreteGaussianLoss"
              | "DiscreteGaussian"):
            key, default = ("shift", []) if kind[-4:] == "Loss" else ("sensitivity", [1])
            shift, scale = number(key, 0, 2**999, *default), number("scale")
            name = "discrete gaussian" if "Gaussian" in kind else "discrete laplace"
            few = 1 <= shift < 2048 and (shift % 1 == 0 if "laplace" in name else scale < 50)
            need(few and node.take("dimension", 1) == 1, f"no proof of this {kind}")
            return name, scale, int(shift)
        case "RandomizedResponse":
            k, keep = node.whole("k", 2, 2**53), number("keep", 0, 1)
            lie = (1 - keep) / (k - 1)
            return "pair", ((keep, lie), (lie, keep), (1 - keep - lie,) * 2)
        case "PairLoss":
            return "pair", _pairs(node, "p", "q", 1)
        case "MixtureOfGaussians":
            some = _pairs(node, "weights", "shifts", 2**999)
            return "mixture", number("scale") ** -2, some, STILL
        case "SampledWithoutReplacement":
            node.take("relation", KNOWN[1], fits=KNOWN[1].__eq__)
            rate = Fraction(node.whole("sample", 0, n := node.whole("population", 1, 10**15)), n)
            if not (found := sampled(rate, KNOWN[0])) or rate == 1:
                return found
            plain = found[0] != "sampled" or [one[0] for one in found[2]] == ["response"]
            need(plain, "a sample without replacement of this part has no proof here")
            return "bound", ("subset", found), found
        case "TruncatedPoisson":
            n, b = (node.whole(x, 1, 10**15) for x in ("records", "batch"))
            rate, relation = number("rate", 0, 1), related()
            if not (found := sampled(rate, relation)) or b >= n:
                return found
            need(found[0] == "mixture" and rate < 1 and relation in KNOWN, "no proof of this batch")
            return "truncated", found[1], rate, n, b, relation == KNOWN[1]
        case "ShuffledEpoch":
            away = node.take("relation", BLANK, fits=(BLANK, KNOWN[1]).__contains__) == BLANK
            many, found = node.whole("batches", 1, 10**9), part()
            pair = ("greatest", found[1], int(away), many) if found[0] == "gaussian" else None
            return ("bound", found, pair) if many > 1 else found
        case "RandomAllocation":
            steps, found, _ = node.whole("steps", 1, 10**7), part(), related()
            picks = node.whole("picks", 1, steps, 1)
            node.times, less = picks * node.whole("epochs", 1, 10**6, 1), steps // picks
            need(found[0] == "gaussian", "allocation of this part has no proof here")
            found = ("allocation", found[1], less) if less > 1 else found
            return ("bound", found, None) if 1 < picks < steps else found
    raise NoProof(f"the kind {node.name} has no proof here")
def _pairs(node: Fields, first: str, second: str, most: int) -> Any:  # made to sum to 1
    sides = [[Fraction(float(Fields({key: x}, node.name).number(key, 0, high)))  # floats always
              for x in node.take(key, fits=is_list)] for key, high in ((first, 1), (second, most))]
    right = all(abs(float(sum(one)) - 1) < 1e-9 for one in (sides if most == 1 else sides[:1]))
    need(right and len(sides[0]) == len(sides[1]), f"{node.name} needs distributions", ProofError)
    a, b = sum(sides[0]), sum(sides[1]) if most == 1 else 1
    return tuple((w / a, s / b) for w, s in zip(*sides, strict=True) if w or most == 1)
def _one(ways: Ways) -> Any:  # the release of a part; several Gaussians are one
    if len(ways) == 1 and {one[0] for one in ways[0]} == {"gaussian"} and len(ways[0]) < 99:
        return "gaussian", sum(one[1] * n for one, n in ways[0].items())
    need(len(ways) == 1 and list(ways[0].values()) == [1], "a sample of several has no proof here")
    return next(iter(ways[0]))
def _sampled(rate: Fraction, value: Any, relation: str, depth: int, group: Any) -> Any:
    inner, replaced = _ways(value, depth, ALONE), relation == KNOWN[1]
    if rate == 0 or inner == [Counter()]:
        return None
    plain = group == ALONE and not replaced
    if plain and len(inner) == 1 and {one[0] for one in inner[0]} <= FINITE:
        need(inner[0].total() <= 20, "a sample of so many finite releases has no proof here")
        return "sampled", rate, tuple(sorted(inner[0].elements(), key=repr))
    part = _one(inner)
    digits = max(80, rate.denominator.bit_length())
    need(sum(group) * digits <= 5120, "a sampled group so large has no proof here")
    if plain and part[0] in ("laplace", "sampled laplace"):
        return ("sampled laplace", part[1], part[2] * rate) if rate < 1 else part
    need(part[0] == "gaussian", f"a sample of a {part[0]} has no proof here")
    if not replaced:  # so many of the group as Bin(n, rate) says are in the sample
        if rate == 1 and not group[1]:
            return "gaussian", part[1] * group[0] ** 2
        return "mixture", part[1], *(tuple(
            (comb(n, k) * rate**k * (1 - rate) ** (n - k), sign * k * ONE) for k in range(n + 1)
            if rate < 1 or k == n) for n, sign in zip(group, (1, -1), strict=True))
    need(group == ALONE, "a group of replaced records has no proof here")
    need('"relation"' not in json.dumps(value, default=str), "a sample of a replaced record's part")
    still = ((1 - rate, 0 * ONE),) if rate < 1 else ()
    return "mixture", part[1], (*still, (rate, ONE)), (*still, (rate, -ONE))
