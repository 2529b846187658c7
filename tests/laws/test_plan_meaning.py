"""Law: ledger, checker and `Tight` mean the same plan, and no end is below what can be paid.

What can be paid is found by brute force, in `tests/laws/plan_paths.py`, from docs/plans.md.
"""

import math
from math import comb

import numpy as np
import pytest
from scipy.special import ndtr

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import ctx

from accountant import (
    GaussianLoss,
    Grouped,
    OffPlan,
    OnePass,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    Repeat,
    Sequential,
    Tight,
)
from accountant.ledger.plan_cursor import PlanCursor
from accountant.proofs.writer import write_proof
from accountant.serialisation.plan_json import to_dict
from accountant.verifier import choices, lattice_sums, verdict, verify
from accountant.verifier.balls import Budget
from accountant.verifier.bounding_pairs import bounding_pair
from accountant.verifier.document import Fields
from accountant.verifier.releases import inner_releases
from tests.laws.plan_paths import (
    adaptive_delta,
    fixed_delta,
    largest_groups,
    paths,
    random_plan,
    steps,
)
from tests.mutants import plan_meanings

ROUND_OFF = 1e-9  # of delta, of the recursion in floats
SEEDS = range(24)
# the first: an adversary gains more than by every fixed path
FIXED = (
    2 * Parallel([PureLoss(1.0), PairLoss([0.02, 0.98], [0.001, 0.999])]),
    3 * Parallel([PairLoss([0.5, 0.5], [0.25, 0.75]), PairLoss([0.9, 0.1], [0.96, 0.04])]),
    2 * Parallel([2 * PureLoss(0.4), PureLoss(0.3) + Parallel([PureLoss(0.7), random_plan(1)])]),
)


# --- the checker


def bound_above(plan, epsilon, rules=()):
    """What the checker proves of delta at an epsilon, on a coarse lattice."""
    Budget.remaining = math.inf
    ways = choices.alternatives(to_dict(plan), decimal=False)
    numbers = {key: x.hex() for key, x in (("a", 2.0), ("h", 0.02), ("slack", 1e-9))}
    found = 0.0
    with ctx.workprec(192):
        for way, back in verdict.directions(ways):
            items = [(bounding_pair(one, above=True), n) for one, n in ways[way].items()]
            fields = numbers | {"size": 2**12, "rules": [dict(rule) for rule in rules]}
            delta = lattice_sums.composed(items, bool(back), Fields(fields, "an entry"), above=True)
            found = max(found, float(delta(epsilon)[1].upper()))
    return found


def checker_violation(plans=None) -> str:
    """A plan of which the checker proves less than an adversary gains."""
    for k, plan in enumerate(plans or (*FIXED, *map(random_plan, SEEDS))):
        for epsilon in (float(np.random.default_rng([k, 37]).uniform(-0.2, 1.5)), 0.6):
            true = max(adaptive_delta(plan, epsilon, back) for back in (False, True))
            if (proved := bound_above(plan, epsilon)) < true - ROUND_OFF:
                return f"{plan} costs {true} at epsilon {epsilon}, and {proved} is proved"
    return ""


def test_the_checker_proves_no_upper_end_below_what_an_adversary_gains():
    assert checker_violation() == ""


def test_an_adversary_gains_more_than_by_every_fixed_path():
    """Else the law could not tell a list of paths from choices by earlier answers."""
    known = paths(FIXED[0])
    for epsilon in (0.6, 1.01):
        gain = adaptive_delta(FIXED[0], epsilon)
        assert gain > 1.002 * max(fixed_delta(path, epsilon) for path in known)


# --- groups: each time another split of their records

MU, RATE, POINTS = 1.0, 0.5, np.linspace(-12, 14, 20_001)


def split(in_p):
    """Tails under P and Q, and losses, of two records, so many of them in P alone."""
    sides = [
        [(comb(n, k) * RATE**k * (1 - RATE) ** (n - k), sign * k * MU) for k in range(n + 1)]
        for n, sign in ((in_p, 1), (2 - in_p, -1))
    ]
    tails = [sum(w * ndtr(s - POINTS) for w, s in side) for side in sides]
    logs = [np.log(sum(w * np.exp(s * POINTS - s * s / 2) for w, s in side)) for side in sides]
    return *tails, logs[0] - logs[1]


def two_splits(epsilon):
    """A delta that an adversary gains of two samples: the second split is chosen by the first."""
    splits = [split(in_p) for in_p in range(3)]

    def gain(one, at):  # of the event that the loss is at least so much
        p, q, losses = one
        k = np.minimum(np.searchsorted(losses, at), losses.size - 1)
        return np.maximum(p[k] - np.exp(at) * q[k], 0.0)

    gains = []
    for p, _, losses in splits:
        second = np.max([gain(one, epsilon - losses[:-1]) for one in splits], axis=0)
        gains.append(float(np.sum(-np.diff(p) * second)))
    return max(gains)


def group_violation(epsilon=1.0) -> str:
    """A group of which less is proved than an adversary gains."""
    plan = 2 * Grouped(PoissonSampled(GaussianLoss(MU), RATE), 2)
    rule = {"first": (-9.0).hex(), "step": (0.02).hex(), "count": 1000}
    true, proved = two_splits(epsilon), 0.0
    proved = bound_above(plan, epsilon, [rule] * rules_of(plan))
    return f"{plan} costs {true}, and {proved} is proved" if proved < true else ""


def rules_of(plan):
    """How many releases of noise an entry is about."""
    way = choices.alternatives(to_dict(plan), decimal=False)[0]
    return sum(len(inner_releases(release)) for release in way)


def test_a_group_is_split_anew_each_time():
    assert group_violation() == ""


# --- Tight, and proofs as files


def ends_violation(plan, delta, lower, upper) -> str:
    """An end on the wrong side of what an adversary gains."""

    def gain(epsilon, of=plan):
        return max(adaptive_delta(of, epsilon, back) for back in (False, True))

    if math.isfinite(upper) and gain(upper) > delta * (1 + 1e-6) + 1e-13:
        return f"{plan} at {delta}: epsilon {upper} has delta {gain(upper)}"
    most = gain(0.999999 * lower - 1e-9, largest_groups(plan)) if lower > 0 else 1.0
    if most < delta * (1 - 1e-6) - 1e-13:
        return f"{plan} at {delta}: epsilon {lower} has delta {most} alone"
    return ""


def some_delta(seed):
    return float(10 ** np.random.default_rng([seed, 38]).uniform(-4, -1))


def tight_violation(plan, delta) -> str:
    """An end of `Tight` on the wrong side of what an adversary gains."""
    found = Tight().certify(plan, delta)
    return ends_violation(plan, delta, found.lower, found.upper)


def proof_violation(plan, delta) -> str:
    """A proved end on the wrong side of what an adversary gains, or a plan without a proof."""
    found = Tight().certify(plan, delta)
    if not math.isfinite(found.upper):
        return ""
    proved = verify(write_proof(plan, delta, found.lower, found.upper))
    if proved.word == "NOT PROVED":
        return f"{plan} at {delta} is not proved: {proved.reason}"
    lower = proved.lower if proved.word == "PROVED" else 0.0
    return ends_violation(plan, delta, lower, proved.upper)


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_tight_is_around_what_an_adversary_gains(seed):
    assert tight_violation(random_plan(seed), some_delta(seed)) == ""


def test_a_proof_is_around_what_an_adversary_gains():
    assert proof_violation(FIXED[0], 0.1) == ""


# --- the ledger


def as_released(plan):
    """The plan as one record goes through it, and what is in a pass as releases of its own."""
    match plan:
        case Grouped(part=part) | OnePass(part=part):
            return as_released(part)
        case Sequential(parts=some):
            return Sequential(map(as_released, some))
        case Repeat(part=part, count=count):
            return Repeat(as_released(part), count)
        case Parallel(parts=some):
            return Parallel([as_released(part) for part in some])
    return plan


def ledger_violation(plan, seed) -> str:
    """A user who went through what is no path, or a path that the ledger refuses."""
    plan, rng = as_released(plan), np.random.default_rng([seed, 39])
    known = paths(plan)
    for path in stray_paths(plan, known, rng):
        if not any(is_part_of(path, whole) for whole in known):
            return f"{plan}: a user went through {path}"
    # a part that begins with a Parallel has the users of its first part alone: stricter
    for _ in range(0 if opens_by_choice(steps(plan)) else 3):
        cursor, path = PlanCursor(plan, 12), []
        try:
            lead(cursor, steps(plan), np.arange(12), rng, path)
        except OffPlan as error:
            return f"{plan}: after {path}: {error}"
        if cursor.next is not None or tuple(path) not in known:
            return f"{plan}: a user went through {path}, and {cursor.next} is next"
    return ""


def opens_by_choice(some):
    """Whether a part of a Parallel begins with a Parallel."""
    inside = [part for kind, what in some if kind == "choose" for part in what]
    return any(part[0][0] == "choose" or opens_by_choice(part) for part in inside)


def stray_paths(plan, known, rng, users=5, tries=200):
    """What each user pays where an adversary asks at random, any leaf of any users."""
    leaves = list(dict.fromkeys(leaf for path in known for leaf in path))
    cursor, paid = PlanCursor(plan, users), [()] * users
    for _ in range(tries):
        who = np.flatnonzero(rng.random(users) < rng.choice([0.3, 0.6, 1.0]))
        leaf = leaves[int(rng.integers(len(leaves)))]
        try:
            cursor.charge(leaf, who)
        except OffPlan:
            continue
        for user in who:
            paid[user] += (leaf,)
    return paid


def is_part_of(path, whole):
    """Whether a path is a whole one without some releases, in which a user took no part."""
    rest = iter(whole)
    return all(leaf in rest for leaf in path)


def lead(cursor, some, group, rng, path=None):
    """Lead a group through steps, its first user on a random path; the others open other parts."""
    for kind, what in some:
        if kind == "release":
            cursor.charge(what, group)
            if path is not None:
                path.append(what)
            continue
        own = int(rng.integers(min(len(what), group.size)))
        others = list(group[1:])
        for k, part in enumerate(what):
            if k == own:
                needed = len(what) - k - 1
                members = [group[0], *others[: max(len(others) - needed, 0)]]
                others = others[len(members) - 1 :]
                lead(cursor, part, np.array(members), rng, path)
            elif others:
                lead(cursor, part, np.array([others.pop(0)]), rng)


def ledgers_violation(seeds=range(16)) -> str:
    """What the ledger lets through, of some plans."""
    plans = [(plan, k) for k, plan in enumerate((*FIXED, *map(random_plan, seeds)))]
    return next((words for plan, k in plans if (words := ledger_violation(plan, k))), "")


def test_the_ledger_lets_through_all_paths_and_nothing_else():
    assert ledgers_violation() == ""


# --- mutants

VIOLATIONS = {"checker": checker_violation, "groups": group_violation, "ledger": ledgers_violation}


@pytest.mark.parametrize(
    ("law", "mutant"),
    [(law, mutant) for law in VIOLATIONS for mutant in plan_meanings.MUTANTS[law]],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_another_meaning_is_caught(law, mutant, monkeypatch):
    mutant(monkeypatch)
    assert VIOLATIONS[law]() != ""


# --- sweeps


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 40))
def test_a_sweep_of_plans(first):
    seeds = range(first, first + 40)
    assert checker_violation([random_plan(seed) for seed in seeds]) == ""
    assert ledgers_violation(seeds) == ""
    for seed in seeds:
        assert tight_violation(random_plan(seed), some_delta(seed)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2030))
def test_a_sweep_of_proofs(seed):
    assert proof_violation(random_plan(seed), some_delta(seed)) == ""
