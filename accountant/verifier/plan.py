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
        content = json.loads(document.decode("ascii"))
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"no JSON of finite numbers: {str(error)[:99]}") from None
    need(f"{text}\n".encode() == document, "not canonical: sorted keys, no blanks", ProofError)
    return Fields(content, "the proof")
class Fields:
    """A table of which each field is asked for, with what it may hold."""
    def __init__(self, value: Any, name: str) -> None:
        need(isinstance(value, dict), f"{name} must be a table", ProofError)
        self.left, self.name, self.times = dict(value), name, 1
    def take(self, key: str, *default: Any, fits: Any = None) -> Any:  # a field that fits
        need(default or key in self.left, f"{self.name} has no field {key!r}", ProofError)
        value = self.left.pop(key, *default)
        need(not fits or fits(value), f"{key} of {self.name} is wrong or out of range", ProofError)
        return value
    def real(self, key: str, low: float, high: float) -> float:  # of the only hexadecimal form
        text = self.take(key, fits=lambda x: isinstance(x, str) and HEX.fullmatch(x))
        value = float.fromhex(text)
        canonical = value.hex() == text != "-0x0.0p+0"
        need(canonical, f"{key} of {self.name} has another canonical form", ProofError)
        need(low <= value <= high, f"{key} of {self.name} is not in [{low}, {high}]", ProofError)
        return value
    def whole(self, key: str, low: int, high: int, *default: int) -> int:  # a whole number
        return int(self.take(key, *default, fits=lambda x: type(x) is int and low <= x <= high))
    def number(self, key: str, low: Any = 2.0**-999, high: Any = 2**999, *default: Any) -> Fraction:
        fits = lambda x: type(x) is Fraction and low <= x <= high  # of the plan, exactly
        fraction: Fraction = self.take(key, *default, fits=fits)
        return fraction
    def steps(self, key: str) -> int:  # values of discrete noise are whole numbers apart
        return self.whole(key, 1, 2**53, *([1] if key == "sensitivity" else []))
    def rows(self) -> int:  # coordinates of a value; None stands for one number
        dimension = self.take("dimension", None)
        fits = dimension is None or (type(dimension) is int and 1 <= dimension <= 2**53)
        need(fits, f"dimension of {self.name} is wrong or out of range", ProofError)
        return dimension or 1
    def done(self) -> None:  # refuse fields that were not asked for
        need(not self.left, f"unknown {[*self.left, ''][0][:40]!r} in {self.name}", ProofError)
Releases = Counter[Any]  # how often each is released
KNOWN, BLANK = ("add-remove", "replace-one"), "zero-out"  # blank: a sample as without the record
RELATIONS = *KNOWN, BLANK, "label-replace", "local-replace", "machine-replace"
NEIGHBOURS = {"RandomizedResponse": "local-replace", "SampledWithoutReplacement": KNOWN[1],
              "ShuffledEpoch": BLANK}
SAMPLES = "PoissonSampled", "RandomAllocation", "TruncatedPoisson"
ARITHMETIC = "idealised", "exact"
ONE, STILL, ALONE = Fraction(1), ((Fraction(1), Fraction(0)),), (1, 0)
FINITE = {"response", "pair", "discrete laplace"}
def read_plan(plan: Any, *, decimal: bool) -> Releases:
    """Return what is released; ``decimal``: numbers are what is printed, not its float."""
    # A release is a pair (P, Q), of which P has the record and Q has not, or several:
    #     ("gaussian", mu^2)             N(mu, 1), N(0, 1)
    #     ("laplace", m, 1, 1 if on a grid), ("sampled laplace", m, rate)    of Laplace(m, 1)
    #     ("mixture", unit^2, P, Q)      sum w N(s unit, 1) over the (w, s) of P, and of Q
    #     ("allocation", mu^2, steps)    N(mu, 1) in one secret step, N(0, 1) in others; none
    #     ("response", epsilon, d)       (d, (1-d)e/(1+e), (1-d)/(1+e), 0), e = e^epsilon; mirrored
    #     ("discrete laplace", scale, shift), ("discrete gaussian", scale, shift), ("pair", masses)
    #     ("sampled", rate, parts)       (1-rate) Q + rate P, Q of finite releases of one sample
    #     ("bound", above, below)    one above many pairs, one of them or None; others in lattice.py
    #     ("any of", parts)          what one of these lists of (release, count) has: choices.py
    number: Any = Fraction if decimal else lambda text: Fraction(float(text))
    def read(text: str) -> Any:  # no field takes -0.0, which is 0.0 in other letters
        return number(text) if float(text) or text[0] != "-" else text
    tree = json.loads(json.dumps(plan), parse_float=read)
    releases = _releases(tree, 0, ALONE)
    _stated(tree, 0)
    return releases
def _stated(value: Any, depth: int) -> set[str]:
    """Return the neighbours that a node states, or else its parts: of one sort."""
    need(depth < 200, "a plan is nested at most 50 deep", ProofError)
    if not isinstance(value, dict):
        elements = value if isinstance(value, list) else ()
        return {relation for part in elements for relation in _stated(part, depth + 1)}
    relations = {relation for part in value.values() for relation in _stated(part, depth + 1)}
    kind = value.get("kind")
    if kind == "OnePass":  # a record whose place stays empty
        relations = {BLANK if relation == KNOWN[0] else relation for relation in relations}
    added = value.get("by") == "value" or kind in SAMPLES
    stated = str(value.get("relation") or (KNOWN[0] if added else NEIGHBOURS.get(str(kind), "")))
    fits = {stated}  # what a part may be stated for
    if kind in SAMPLES:  # a sample compares the data with and without a record
        fits = {KNOWN[0], stated} - {KNOWN[1]}
    elif (kind, stated) == ("ShuffledEpoch", BLANK):
        fits = {KNOWN[0], BLANK}
    elif (kind, stated) == ("Stated", "label-replace"):  # such neighbours are local ones too
        fits = {stated, "local-replace"}
    consistent = relations <= fits if stated else len(relations) < 2
    need(consistent, "parts stated for different neighbours have no proof here")
    return {stated} if stated else relations
def _releases(value: Any, depth: int, group: Any) -> Releases:
    """Return what a node releases; ``group``: records in P alone, and in Q alone."""
    node = Fields(value, "the plan")
    kind = node.take("kind", fits=lambda x: isinstance(x, str) and x)
    node.name = kind[:40]
    count = node.whole("count", 0, 10**15, *([] if kind == "Repeat" else [1]))
    need(depth < 50, "a plan is nested at most 50 deep", ProofError)
    match kind:
        case "Sequential":
            releases = Releases()
            for part in node.take("parts", fits=is_list):
                releases.update(_releases(part, depth + 1, group))
        case "Parallel" if group == ALONE:
            node.take("by", "index", fits=("index", "value").__contains__)
            need(not node.take("moves", [], fits=is_list), "a record that moves has no proof here")
            parts = node.take("parts", fits=is_list)  # a user is in one of them
            releases = any_of([_releases(part, depth + 1, ALONE) for part in parts])
        case "Grouped" if group == ALONE:
            releases = _grouped(node, depth)
        case "Repeat" | "Stated" | "OnePass" | "Claimed":
            releases = _wrapped(kind, node, depth, group)
        case _:
            release = _release(kind, node, depth + 1, group)
            releases = Releases({release: node.times}) if release else Releases()
    node.done()
    few = len(releases) <= 10**5 and all(n * count <= 10**18 for n in releases.values())
    need(few, "too many releases")
    return Releases({release: n * count for release, n in releases.items() if count})
def _grouped(node: Fields, depth: int) -> Releases:
    """Return a group: some of its records are in P alone, the others in Q alone, in all parts."""
    part, size = node.take("part"), node.whole("size", 1, 10**6)
    fewest = 0 if 1 < size <= 64 else size
    need(fewest or size**2 * len(str(part)) < 3e7, "too many ways of a group")
    return any_of([_releases(part, depth + 1, (i, size - i)) for i in range(size, fewest - 1, -1)])
def _wrapped(kind: str, node: Fields, depth: int, group: Any) -> Releases:
    if kind == "Stated" or (kind == "Claimed" and "relation" in node.left):
        node.take("relation", fits=RELATIONS.__contains__)
    if kind == "OnePass":  # a record is in one of the batches
        node.whole("batches", 1, 2**53)
    if kind == "Claimed":  # a claim is about a loss alone
        named = Fields(node.take("mechanism"), "the mechanism of a claim")
        named.take("kind", fits=lambda x: isinstance(x, str) and x)
    return _releases(node.take("loss" if kind == "Claimed" else "part"), depth + 1, group)
def any_of(parts: list[Releases]) -> Releases:
    """Return what stands for one of several parts, each of them once."""
    chosen: dict[Any, Any] = {}
    for part in parts:
        releases: list[Any] = list(part.items())
        alone = len(releases) == 1 and releases[0][1] == 1 and releases[0][0][0] == "any of"
        options = releases[0][0][1] if alone else [tuple(releases)]
        chosen.update((frozenset(x), x) for x in options if frozenset(x) not in chosen)
    if len(chosen) < 2:
        return Releases(dict(*chosen.values()))
    return Releases({("any of", tuple(chosen.values())): 1})
def _release(kind: str, node: Fields, depth: int, group: Any) -> Any:  # or nothing
    number, size = node.number, sum(group)
    related: Any = lambda: str(node.take("relation", KNOWN[0], fits=(*KNOWN, BLANK).__contains__))
    part: Any = lambda: _one(_releases(node.take("part"), depth, group))
    sampled: Any = lambda rate, relation: _sampled(rate, node.take("part"), relation, depth, group)
    match kind:
        case "GaussianLoss":
            return "gaussian", (size * number("mu")) ** 2
        case "LaplaceLoss":
            return "laplace", size * number("shift"), ONE, 0
        case "Gaussian" | "Laplace":
            ideal = node.take("arithmetic", "exact", fits=ARITHMETIC.__contains__) == ARITHMETIC[0]
            ratio = number("sensitivity", 0, 2**999, ONE) / number("scale")
            power = 2 if kind == "Gaussian" else 1  # exact noise is wider by its grid's step
            fits = node.rows() < (ratio * 2**39) ** power
            need(ratio and (fits or ideal), f"{kind} on a grid so coarse has no proof here")
            ratio *= size
            return ("laplace", ratio, ONE, int(not ideal)) if power == 1 else ("gaussian", ratio**2)
        case "PureLoss":
            e = size * number("epsilon", 0)  # of a group: Laplace noise is one such release
            pure = "response", e, 0 * ONE
            return ("bound", pure, ("laplace", e, ONE, 0)) if size > 1 and e else pure
        case "BoundedRangeLoss":
            e = size * number("epsilon", 0)
            return "bound", ("range", e), ("response", e / 2, 0 * ONE)
        case "ZCDPLoss":
            rho, xi = size**2 * number("rho"), number("xi", 0, 2**999 * (size == 1), 0 * ONE)
            return "bound", ("zcdp", rho, xi), ("gaussian", 2 * rho)
        case "PoissonSampled":
            return sampled(number("rate", 0, 1), related())
        case _ if size > 1:
            raise NoProof(f"a group of the kind {node.name} has no proof here")
        case "ApproxLoss":
            return "response", number("epsilon", 0), number("delta", 0, 1)
        case ("DiscreteLaplaceLoss" | "DiscreteLaplace" | "DiscreteGaussianLoss"
              | "DiscreteGaussian"):
            shift = node.steps("shift" if kind[-4:] == "Loss" else "sensitivity")
            scale, law = number("scale"), "gaussian" if "Gaussian" in kind else "laplace"
            name = f"discrete {law}"
            few = shift < 2048 and (name == "discrete laplace" or scale < 50)
            need(few and node.rows() == 1, f"no proof of this {kind}")
            return name, scale, shift
        case "RandomizedResponse":
            k, keep = node.whole("k", 2, 2**53), number("keep", 0, 1)
            lie = (1 - keep) / (k - 1)
            return "pair", ((keep, lie), (lie, keep), (1 - keep - lie,) * 2)
        case "PairLoss":
            return "pair", _pairs(node, "p", "q", 1)
        case "MixtureOfGaussians":
            weighted_shifts = _pairs(node, "weights", "shifts", 2**999)
            return "mixture", number("scale") ** -2, weighted_shifts, STILL
        case "SampledWithoutReplacement":
            node.take("relation", KNOWN[1], fits=KNOWN[1:].__contains__)
            rate = Fraction(node.whole("sample", 0, n := node.whole("population", 1, 10**15)), n)
            if not (inner := sampled(rate, KNOWN[0])) or rate == 1:
                return inner
            plain = inner[0] != "sampled" or [member[0] for member in inner[2]] == ["response"]
            need(plain, "a sample without replacement of this part has no proof here")
            return "bound", ("subset", inner), inner
        case "TruncatedPoisson":
            n, b = (node.whole(x, 1, 10**15) for x in ("records", "batch"))
            rate, relation = number("rate", 0, 1), related()
            if not (inner := sampled(rate, relation)) or b >= n:
                return inner
            need(inner[0] == "mixture" and rate < 1 and relation in KNOWN, "no proof of this batch")
            return "truncated", inner[1], rate, n, b, relation == KNOWN[1]
        case "ShuffledEpoch":
            away = node.take("relation", BLANK, fits=(BLANK, KNOWN[1]).__contains__) == BLANK
            many, inner = node.whole("batches", 1, 10**9), part()
            pair = ("greatest", inner[1], int(away), many) if inner[0] == "gaussian" else None
            return ("bound", inner, pair) if many > 1 else inner
        case "RandomAllocation":
            steps, inner = node.whole("steps", 1, 10**7), part()
            node.take("relation", KNOWN[0], fits=(KNOWN[0], BLANK).__contains__)
            picks = node.whole("picks", 1, steps, 1)
            node.times, steps_per_pick = picks * node.whole("epochs", 1, 10**6, 1), steps // picks
            need(inner[0] == "gaussian", "allocation of this part has no proof here")
            inner = ("allocation", inner[1], steps_per_pick) if steps_per_pick > 1 else inner
            return ("bound", inner, None) if 1 < picks < steps else inner
    raise NoProof(f"the kind {node.name} has no proof here")
def _pairs(node: Fields, first_key: str, second_key: str, greatest: int) -> Any:  # made to sum to 1
    sides = [[Fraction(float(Fields({key: x}, node.name).number(key, 0, high)))  # floats always
              for x in node.take(key, fits=is_list)]
             for key, high in ((first_key, 1), (second_key, greatest))]
    masses = sides if greatest == 1 else sides[:1]
    sum_to_1 = all(abs(float(sum(side)) - 1) < 1e-9 for side in masses)
    need(sum_to_1 and len(sides[0]) == len(sides[1]), f"{node.name} needs distributions",
         ProofError)
    a, b = sum(sides[0]), sum(sides[1]) if greatest == 1 else 1
    return tuple((w / a, s / b) for w, s in zip(*sides, strict=True) if w or greatest == 1)
def _one(part: Releases) -> Any:  # the release of a part; several Gaussians are one
    need(all(release[0] != "any of" for release in part),
         "a sample of one of several has no proof here")
    if {release[0] for release in part} == {"gaussian"} and len(part) < 99:
        return "gaussian", sum(release[1] * n for release, n in part.items())
    need(list(part.values()) == [1], "a sample of several has no proof here")
    return next(iter(part))
def _sampled(rate: Fraction, value: Any, relation: str, depth: int, group: Any) -> Any:
    inner, replaced = _releases(value, depth, ALONE), relation == KNOWN[1]
    if rate == 0 or not inner:
        return None
    one_record = group == ALONE and not replaced
    if one_record and {release[0] for release in inner} <= FINITE:
        need(inner.total() <= 20, "a sample of so many finite releases has no proof here")
        return "sampled", rate, tuple(sorted(inner.elements(), key=repr))
    part = _one(inner)
    digits = max(80, rate.denominator.bit_length())
    need(sum(group) * digits <= 5120, "a sampled group so large has no proof here")
    if one_record and part[0] in ("laplace", "sampled laplace"):
        return ("sampled laplace", part[1], part[2] * rate) if rate < 1 else part
    need(part[0] == "gaussian", f"a sample of a {part[0]} has no proof here")
    if not replaced:  # so many of the group as Bin(n, rate) says are in the sample
        if rate == 1 and not group[1]:
            return "gaussian", part[1] * group[0] ** 2
        return "mixture", part[1], *(tuple(
            (comb(n, k) * rate**k * (1 - rate) ** (n - k), sign * k * ONE) for k in range(n + 1)
            if rate < 1 or k == n) for n, sign in zip(group, (1, -1), strict=True))
    need(group == ALONE, "a group of replaced records has no proof here")
    unsampled = ((1 - rate, 0 * ONE),) if rate < 1 else ()
    return "mixture", part[1], (*unsampled, (rate, ONE)), (*unsampled, (rate, -ONE))
