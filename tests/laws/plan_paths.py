"""What a user of a plan can go through, by brute force: written from docs/plans.md, not from code.

A plan is a tree of decisions: at each occurrence of a `Parallel` the part is chosen anew, and the
choice may depend on all earlier answers.  Losses are finite, so the adaptive value of a plan is a
dynamic programme: V(l) = (1 - e^{eps - l})_+ at the end; E_P V(l + L) before a release; the
greatest V of all parts before a decision.  A group pays each of its records' paths.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from accountant import (
    ApproxLoss,
    DiscreteLaplaceLoss,
    Grouped,
    OnePass,
    PairLoss,
    Parallel,
    PureLoss,
    Repeat,
    Sequential,
    ShuffledEpoch,
    Stated,
)
from mechanisms import RandomizedResponse


def outcomes(leaf):
    """P and Q of each outcome of a finite loss, from its definition."""
    match leaf:
        case PureLoss(epsilon=e):
            high = 1 / (1 + math.exp(-e))
            return [(high, 1 - high), (1 - high, high)]
        case ApproxLoss(epsilon=e, delta=d):
            high, low = (1 - d) / (1 + math.exp(-e)), (1 - d) / (1 + math.exp(e))
            return [(d, 0.0), (high, low), (low, high), (0.0, d)]
        case RandomizedResponse(k=k, keep=keep):
            lie = (1 - keep) / (k - 1)
            return [(keep, lie), (lie, keep), ((k - 2) * lie, (k - 2) * lie)]
        case DiscreteLaplaceLoss(scale=scale, shift=shift):
            far = int(40 * scale) + shift  # beyond it a mass below 10^-17
            r = math.exp(-1 / scale)
            mass = lambda k: (1 - r) / (1 + r) * r ** abs(k)  # noqa: E731
            return [(mass(k - shift), mass(k)) for k in range(-far, far + shift + 1)]
        case PairLoss(p=p, q=q):
            return list(zip(p, q, strict=True))
    raise TypeError(leaf)


def merged(law):
    """The losses of a finite law with P's masses, equal losses added up."""
    found = {}
    for p, q in law:
        if p > 0:
            loss = math.log(p / q) if q > 0 else math.inf
            found[round(loss, 12)] = found.get(round(loss, 12), 0.0) + p
    return list(found.items())


def steps(plan):
    """What happens in order: ("release", leaf) or ("choose", [steps of each part])."""
    match plan:
        case Sequential(parts=parts):
            return [one for part in parts for one in steps(part)]
        case Repeat(part=part, count=count):
            return count * steps(part)
        case Grouped(part=part, size=size):  # each record of the group goes through the part
            return size * steps(part)
        case Stated(part=part) | OnePass(part=part) | ShuffledEpoch(part=part):
            return steps(part)
        case Parallel(parts=parts):
            each = [found for part in parts if (found := steps(part))]
            return [("choose", each)] if each else []
    return [("release", plan)]


def largest_groups(plan):
    """The plan with the most that a mechanism of its losses may cost a group: one response."""
    match plan:
        case Grouped(part=PureLoss(epsilon=e), size=size):
            return PureLoss(size * e)
        case Sequential(parts=parts):
            return Sequential(map(largest_groups, parts))
        case Repeat(part=part, count=count):
            return Repeat(largest_groups(part), count)
        case OnePass(part=part, batches=batches):
            return OnePass(largest_groups(part), batches)
        case Parallel(parts=parts, by=by):
            return Parallel(map(largest_groups, parts), by=by)
    return plan


def paths(plan):
    """All sequences of releases that a user can go through."""

    def of(some):
        found = [()]
        for kind, what in some:
            ends = [(what,)] if kind == "release" else [end for one in what for end in of(one)]
            found = [start + end for start in found for end in ends]
        return found

    return list(dict.fromkeys(of(steps(plan))))


def adaptive_delta(plan, epsilon, back=False):
    """The most that an adversary who chooses the parts by earlier answers gains."""
    laws, known = {}, {}

    def law_of(leaf):
        if leaf not in laws:
            laws[leaf] = merged([(q, p) if back else (p, q) for p, q in outcomes(leaf)])
        return laws[leaf]

    def value(rest, loss):  # rest: a linked list of steps, (step, rest) or ()
        if loss == math.inf:
            return 1.0
        if not rest:
            return max(0.0, -math.expm1(epsilon - loss))
        key = (id(rest), round(loss, 10))
        if key not in known:
            (kind, what), after = rest
            if kind == "release":
                found = sum(p * value(after, loss + more) for more, p in law_of(what))
            else:
                found = max(value(joined(part, after), loss) for part in what)
            known[key] = found
        return known[key]

    chains = {}

    def joined(some, after):
        key = (id(some), id(after))
        if key not in chains:
            chain = after
            for step in reversed(some):
                chain = (step, chain)
            chains[key] = chain
        return chains[key]

    return value(joined(steps(plan), ()), 0.0)


def fixed_delta(path, epsilon, back=False):
    """Delta of one path."""
    return adaptive_delta(Sequential(path), epsilon, back)


# --- random plans of finite losses


def number(rng, low, high):
    """A random number of few digits."""
    return round(float(rng.uniform(low, high)), 3)


def random_pair(rng):
    p, q = (np.round(rng.dirichlet([2.0, 2.0]) * 0.8 + 0.1, 3) for _ in range(2))
    return PairLoss([float(p[0]), 1 - float(p[0])], [float(q[0]), 1 - float(q[0])])


LEAVES = (
    lambda rng: PureLoss(number(rng, 0.2, 1.5)),
    lambda rng: RandomizedResponse(int(rng.integers(2, 5)), number(rng, 0.5, 0.8)),
    random_pair,
    random_pair,
    lambda rng: DiscreteLaplaceLoss(number(rng, 0.7, 1.5), int(rng.integers(1, 3))),
    lambda rng: ApproxLoss(number(rng, 0.2, 1.0), number(rng, 0.001, 0.05)),
)


def random_leaf(rng):
    return LEAVES[int(rng.integers(len(LEAVES)))](rng)


def random_node(rng, depth):
    """A tree; where one user may go through many releases, few of them at a time."""
    if depth == 0 or rng.random() < 0.15:
        return random_leaf(rng)
    inner = partial(random_node, rng, depth - 1)
    kind = rng.choice(["Sequential", "Repeat", "Parallel", "Parallel", "Grouped", "OnePass"])
    match kind:
        case "Sequential":
            return Sequential([inner() for _ in range(2)])
        case "Repeat":
            return int(rng.integers(1, 4)) * inner()
        case "Parallel":
            by = "value" if rng.random() < 0.3 else "index"
            try:
                return Parallel([inner() for _ in range(int(rng.integers(2, 4)))], by=by)
            except ValueError:  # of local reports, by value
                return random_leaf(rng)
        case "Grouped":
            return Grouped(PureLoss(number(rng, 0.2, 0.6)), int(rng.integers(2, 4)))
    return OnePass(inner(), int(rng.integers(1, 4)))


MOST_STEPS = 7


def random_plan(seed, depth=3):
    """A plan with a Parallel that is repeated or stands among other releases, of short paths."""
    rng = np.random.default_rng([36, seed])
    while True:
        try:
            plan = random_node(rng, depth)
        except ValueError:  # parts of different neighbours
            continue
        some = steps(plan)
        chosen = sum(kind == "choose" for kind, _ in some)
        if chosen and len(some) > 1 and max(map(len, paths(plan))) <= MOST_STEPS:
            return plan
