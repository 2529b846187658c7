"""Each node of a plan: the pair that the checker reads, in exact fractions, and its limits."""

import functools
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from math import comb

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.verifier.document import NoProof, ProofError
from accountant.verifier.plan import read_plan

ONE, ZERO = Fraction(1), Fraction(0)
STILL = ((ONE, ZERO),)
GAUSSIAN = {"kind": "GaussianLoss", "mu": 0.75}
LAPLACE = {"kind": "LaplaceLoss", "shift": 0.75}
PURE = {"kind": "PureLoss", "epsilon": 0.75}
SHOWN = {"kind": "ApproxLoss", "epsilon": 0.75, "delta": 0.25}
PAIR = {"kind": "PairLoss", "p": [0.25, 0.75], "q": [0.5, 0.5]}
INTEGERS = {"kind": "DiscreteLaplaceLoss", "scale": 2.0, "shift": 3}
NORMAL_INTEGERS = {"kind": "DiscreteGaussianLoss", "scale": 2.0, "shift": 3}
SHIFT = Fraction(3, 4)
NORMAL, DOUBLE = ("gaussian", SHIFT**2), ("laplace", SHIFT, 1, 0)
RESPONSE = ("response", SHIFT, ZERO)
MASSES = ("pair", ((Fraction(1, 4), Fraction(1, 2)), (Fraction(3, 4), Fraction(1, 2))))
ON_INTEGERS = ("discrete laplace", Fraction(2), 3)


def node(kind, part=None, **fields):
    """A node of a kind, with its part where it has one."""
    return {"kind": kind, **fields} | ({} if part is None else {"part": part})


def noise(kind, scale=4.0, sensitivity=3.0, **fields):
    return node(kind, scale=scale, sensitivity=sensitivity, **fields)


def group(part, size):
    return node("Grouped", part, size=size)


def poisson(part, rate=0.25, **fields):
    return node("PoissonSampled", part, rate=rate, **fields)


def subset(part, sample=1, population=4):
    return node("SampledWithoutReplacement", part, sample=sample, population=population)


def truncated(part, rate=0.25, records=9, batch=4, **fields):
    return node("TruncatedPoisson", part, rate=rate, records=records, batch=batch, **fields)


def shuffled(part, batches=5, **fields):
    return node("ShuffledEpoch", part, batches=batches, **fields)


def allocated(part, steps=12, **fields):
    return node("RandomAllocation", part, steps=steps, **fields)


def binomial(n, rate, sign=1):
    """The chances of k of n records in a sample, by all samples, and the shift of each."""
    chances = Counter()
    for sample in itertools.product((0, 1), repeat=n):
        chances[sum(sample)] += math.prod(rate if one else 1 - rate for one in sample)
    return tuple((chances[k], Fraction(sign * k)) for k in range(n + 1))


def released(plan, *, decimal=False):
    return dict(read_plan(plan, decimal=decimal))


def options(plan):
    """The lists of releases of the one set that a plan is."""
    (((kind, parts), count),) = released(plan).items()
    assert (kind, count) == ("any of", 1)
    return [dict(part) for part in parts]


QUARTER = Fraction(1, 4)
ADDED = ("mixture", SHIFT**2, ((1 - QUARTER, ZERO), (QUARTER, ONE)), STILL)
REPLACED = (*ADDED[:3], ((1 - QUARTER, ZERO), (QUARTER, -ONE)))
SAMPLED_DOUBLE = ("sampled laplace", SHIFT, QUARTER)
FEW = ("sampled", QUARTER, (RESPONSE,))
TINY = 2.0**-39
SINGLE = [
    (GAUSSIAN, NORMAL), (LAPLACE, DOUBLE), (PURE, RESPONSE),
    (noise("Gaussian"), NORMAL), (noise("Gaussian", arithmetic="idealised"), NORMAL),
    (noise("Gaussian", arithmetic="exact", dimension=7), NORMAL),
    (node("Gaussian", scale=4.0), ("gaussian", Fraction(1, 16))),
    (noise("Laplace"), ("laplace", SHIFT, 1, 1)),
    (noise("Laplace", arithmetic="exact", dimension=None), ("laplace", SHIFT, 1, 1)),
    (noise("Laplace", arithmetic="idealised", dimension=2**53), DOUBLE),
    (node("Laplace", scale=4.0), ("laplace", QUARTER, 1, 1)),
    (noise("Laplace", 1.0, 4 * TINY, dimension=3), ("laplace", Fraction(4 * TINY), 1, 1)),
    (noise("Gaussian", 1.0, 3 * TINY, dimension=8), ("gaussian", Fraction(3 * TINY) ** 2)),
    (node("PureLoss", epsilon=0.0), ("response", ZERO, ZERO)),
    (node("BoundedRangeLoss", epsilon=0.75), ("bound", ("range", SHIFT),
     ("response", SHIFT / 2, ZERO))),
    (node("ZCDPLoss", rho=0.75), ("bound", ("zcdp", SHIFT, ZERO), ("gaussian", 2 * SHIFT))),
    (node("ZCDPLoss", rho=0.75, xi=0.25), ("bound", ("zcdp", SHIFT, QUARTER),
     ("gaussian", 2 * SHIFT))),
    (SHOWN, ("response", SHIFT, QUARTER)),
    (node("ApproxLoss", epsilon=0.0, delta=1.0), ("response", ZERO, ONE)),
    (INTEGERS, ON_INTEGERS), (noise("DiscreteLaplace", 2.0, 3), ON_INTEGERS),
    (node("DiscreteLaplace", scale=2.0), ("discrete laplace", Fraction(2), 1)),
    (noise("DiscreteLaplace", 64.0, 2047, dimension=1), ("discrete laplace", Fraction(64), 2047)),
    (NORMAL_INTEGERS, ("discrete gaussian", Fraction(2), 3)),
    (noise("DiscreteGaussian", 49.5, 2047), ("discrete gaussian", Fraction(99, 2), 2047)),
    (node("DiscreteGaussian", scale=2.0), ("discrete gaussian", Fraction(2), 1)),
    (node("Skellam", scale=2.0), ("summed noise", "skellam", Fraction(2), 1, 1)),
    (noise("Skellam", 2.0, 3.5), ("summed noise", "skellam", Fraction(2), 1, 3)),
    (noise("Skellam", 2.0, 1.25, dimension=9), ("summed noise", "skellam", Fraction(2), 1, 1)),
    (node("SummedNoiseLoss", noise=node("SkellamNoise", scale=2.0, terms=3), shift=2),
     ("summed noise", "skellam", Fraction(2), 3, 2)),
    (node("SumOfClients", mechanism=node("DiscreteGaussian", scale=2.0), clients=9),
     ("summed noise", "discrete gaussian", Fraction(2), 9, 1)),
    (node("SumOfClients", mechanism=node("Skellam", scale=0.25), clients=9, dropout=4),
     ("summed noise", "skellam", QUARTER, 5, 1)),
    (poisson(NORMAL_INTEGERS), ("sampled", QUARTER, (("discrete gaussian", Fraction(2), 3),))),
    (PAIR, MASSES), (node("PairLoss", p=[0.0, 1.0], q=[1.0, 0.0]), ("pair", ((ZERO, ONE),
     (ONE, ZERO)))),
    (node("MixtureOfGaussians", scale=2.0, weights=[0.25, 0.0, 0.75], shifts=[3.0, 9.0, 0.0]),
     ("mixture", QUARTER, ((QUARTER, Fraction(3)), (SHIFT, ZERO)), STILL)),
    (poisson(GAUSSIAN), ADDED), (poisson(GAUSSIAN, relation="zero-out"), ADDED),
    (poisson(GAUSSIAN, relation="replace-one"), REPLACED),
    (poisson(GAUSSIAN, 1.0), NORMAL),
    (poisson(GAUSSIAN, 1.0, relation="replace-one"), ("mixture", SHIFT**2, ((ONE, ONE),),
     ((ONE, -ONE),))),
    (poisson(node("Repeat", GAUSSIAN, count=3)), (ADDED[0], 3 * SHIFT**2, *ADDED[2:])),
    (poisson(LAPLACE), SAMPLED_DOUBLE), (poisson(LAPLACE, 1.0), DOUBLE),
    (poisson(poisson(LAPLACE, 0.5), 0.5), SAMPLED_DOUBLE),
    (poisson(PURE), FEW),
    (subset(GAUSSIAN), ("bound", ("subset", ADDED), ADDED)),
    (subset(LAPLACE), ("bound", ("subset", SAMPLED_DOUBLE), SAMPLED_DOUBLE)),
    (subset(PURE), ("bound", ("subset", FEW), FEW)),
    (subset(LAPLACE, 4, 4), DOUBLE), (subset(PURE, 4, 4), ("sampled", ONE, (RESPONSE,))),
    (subset(LAPLACE, 1, 1), DOUBLE),
    (truncated(GAUSSIAN), ("truncated", SHIFT**2, QUARTER, 9, 4, 0)),
    (truncated(GAUSSIAN, relation="replace-one"), ("truncated", SHIFT**2, QUARTER, 9, 4, 1)),
    (truncated(GAUSSIAN, batch=8), ("truncated", SHIFT**2, QUARTER, 9, 8, 0)),
    (truncated(GAUSSIAN, batch=9), ADDED), (truncated(GAUSSIAN, 1.0, batch=10), NORMAL),
    (truncated(LAPLACE, batch=9), SAMPLED_DOUBLE),
    (truncated(GAUSSIAN, records=1, batch=1, relation="replace-one"), REPLACED),
    (truncated(GAUSSIAN, batch=9, relation="zero-out"), ADDED),
    (shuffled(GAUSSIAN, 1), NORMAL), (shuffled(LAPLACE, 1), DOUBLE),
    (shuffled(GAUSSIAN), ("bound", NORMAL, ("greatest", SHIFT**2, 1, 5))),
    (shuffled(GAUSSIAN, relation="replace-one"), ("bound", NORMAL, ("allocation", SHIFT**2, 5))),
    (shuffled(GAUSSIAN, 2, relation="zero-out"), ("bound", NORMAL, ("greatest", SHIFT**2, 1, 2))),
    (shuffled(LAPLACE), ("bound", DOUBLE, None)),
    (allocated(GAUSSIAN, 1), NORMAL), (allocated(GAUSSIAN, 2), ("allocation", SHIFT**2, 2)),
    (allocated(GAUSSIAN), ("allocation", SHIFT**2, 12)),
    (allocated(GAUSSIAN, relation="zero-out"), ("allocation", SHIFT**2, 12)),
    (poisson(allocated(GAUSSIAN)), ("sampled allocation", SHIFT**2, 12, QUARTER)),
    (poisson(allocated(GAUSSIAN), 1.0), ("allocation", SHIFT**2, 12)),
    (poisson(allocated(GAUSSIAN, 1)), ADDED),
    (node("Stated", LAPLACE, relation="label-replace"), DOUBLE),
    (node("OnePass", LAPLACE, batches=1), DOUBLE),
    (node("Claimed", mechanism={"kind": "Mine", "any": [0.5]}, loss=PURE), RESPONSE),
    (node("Claimed", mechanism={"kind": "Mine"}, loss=PURE, relation="zero-out"), RESPONSE),
    (node("Sequential", parts=[LAPLACE]), DOUBLE), (group(LAPLACE, 1), DOUBLE),
    (node("Parallel", parts=[LAPLACE, LAPLACE]), DOUBLE),
    (node("Parallel", parts=[LAPLACE], by="value", moves=[]), DOUBLE),
    (node("Parallel", parts=[LAPLACE], by="index"), DOUBLE),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "release"), SINGLE, ids=repr)
def test_a_node_stands_for_its_pair(plan, release):
    assert released(plan) == {release: 1}
    assert released({**plan, "count": 7}) == {release: 7}
    if plan["kind"] != "Sequential":
        assert released(node("Sequential", parts=[plan, node("Repeat", plan, count=4)])) == {
            release: 5
        }


@pytest.mark.parametrize(("k", "keep"), [(2, 0.75), (5, 0.75), (3, 0.0), (4, 1.0)])
def test_a_response_gives_the_truth_or_one_of_the_other_labels(k, keep):
    keep = Fraction(keep)
    lie = (1 - keep) / (k - 1)
    by_label = [(keep if label == 0 else lie, keep if label == 1 else lie) for label in range(k)]
    joined = [
        *by_label[:2],
        tuple(sum(side) for side in zip((ZERO, ZERO), *by_label[2:], strict=True)),
    ]
    plan = node("RandomizedResponse", k=k, keep=float(keep))
    assert released(plan) == {("pair", tuple(joined)): 1}


def test_counts_multiply_along_a_plan_and_add_up_in_it():
    twice = node("Repeat", node("Sequential", parts=[LAPLACE, {**PURE, "count": 5}]), count=2)
    plan = node("Sequential", parts=[twice, PURE, {**GAUSSIAN, "count": 0}], count=3)
    assert released(plan) == {DOUBLE: 6, RESPONSE: 33}
    assert released(node("Sequential", parts=[])) == released({**PURE, "count": 0}) == {}


@pytest.mark.parametrize(("plan", "count"), [
    (allocated(GAUSSIAN, picks=1, epochs=3), {("allocation", SHIFT**2, 12): 3}),
    (allocated(GAUSSIAN, 13, picks=4), {("bound", ("allocation", SHIFT**2, 3), None): 4}),
    (allocated(GAUSSIAN, picks=7, epochs=2), {("bound", NORMAL, None): 14}),
    (allocated(GAUSSIAN, picks=12, epochs=2), {NORMAL: 24}),
    (allocated(GAUSSIAN, picks=2), {("bound", ("allocation", SHIFT**2, 6), None): 2}),
    (allocated(GAUSSIAN, picks=11), {("bound", NORMAL, None): 11}),
], ids=repr)  # fmt: skip
def test_steps_of_an_allocation_are_one_epoch_for_each_pick(plan, count):
    assert released(plan) == count


def test_a_sample_of_finite_releases_has_them_all():
    parts = node("Sequential", parts=[{**PURE, "count": 2}, PAIR, {**INTEGERS, "count": 17}])
    (((kind, rate, found), count),) = released(poisson(parts)).items()
    assert (kind, rate, count) == ("sampled", QUARTER, 1)
    assert Counter(found) == {RESPONSE: 2, MASSES: 1, ON_INTEGERS: 17}


@pytest.mark.parametrize("sampling", [
    lambda part: poisson(part, 0.0), lambda part: subset(part, 0),
    lambda part: truncated(part, 0.0), lambda part: poisson({**part, "count": 0}),
])  # fmt: skip
@pytest.mark.parametrize("part", [GAUSSIAN, LAPLACE, PURE])
def test_a_sample_of_nothing_releases_nothing(sampling, part):
    assert released(sampling(part)) == {}


@pytest.mark.parametrize("size", [2, 3, 64, 65, 1000])
def test_the_centre_of_noise_moves_as_far_as_a_group_is_large(size):
    plans = {
        json.dumps(GAUSSIAN): ("gaussian", (size * SHIFT) ** 2),
        json.dumps(LAPLACE): ("laplace", size * SHIFT, 1, 0),
        json.dumps(noise("Gaussian")): ("gaussian", (size * SHIFT) ** 2),
        json.dumps(noise("Laplace")): ("laplace", size * SHIFT, 1, 1),
        json.dumps(PURE): (
            "bound", ("response", size * SHIFT, ZERO), ("laplace", size * SHIFT, 1, 0)
        ),
        json.dumps(node("PureLoss", epsilon=0.0)): ("response", ZERO, ZERO),
        json.dumps(node("BoundedRangeLoss", epsilon=0.75)): (
            "bound", ("range", size * SHIFT), ("response", size * SHIFT / 2, ZERO)
        ),
        json.dumps(node("ZCDPLoss", rho=0.75)): (
            "bound", ("zcdp", size**2 * SHIFT, ZERO), ("gaussian", 2 * size**2 * SHIFT)
        ),
    }  # fmt: skip
    for part, release in plans.items():
        assert released(group(json.loads(part), size)) == {release: 1}
    both = node("Sequential", parts=[GAUSSIAN, {**LAPLACE, "count": 2}], count=3)
    moved = {("gaussian", (size * SHIFT) ** 2): 3, ("laplace", size * SHIFT, 1, 0): 6}
    assert released(group(both, size)) == moved


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_a_sampled_group_is_every_split_of_its_records(size, rate):
    sides = {}
    for in_p in range(size + 1):
        shifts = binomial(in_p, Fraction(rate)), binomial(size - in_p, Fraction(rate), -1)
        kept = (tuple(entry for entry in side if entry[0]) for side in shifts)
        sides[in_p] = {("mixture", SHIFT**2, *kept): 1}
    if rate == 1:
        sides[size] = {("gaussian", (size * SHIFT) ** 2): 1}
    found = options(group(poisson(GAUSSIAN, rate), size))
    assert found == [sides[in_p] for in_p in range(size, -1, -1)]


def test_a_group_of_64_records_is_sampled_and_no_larger_one():
    found = options(group(poisson(GAUSSIAN), 64))
    assert len(found) == 65
    for part in found:
        ((_, _, *sides),) = part
        assert [sum(w for w, _ in side) for side in sides] == [1, 1]
    middle = next(iter(found[20]))
    assert [len(side) for side in middle[2:]] == [45, 21]
    chance = comb(44, 7) * QUARTER**7 * (1 - QUARTER) ** 37
    assert middle[2][7] == (chance, Fraction(7))
    with pytest.raises(NoProof, match="so large"):
        released(group(poisson(GAUSSIAN), 65))


def test_parts_by_user_are_a_set():
    parts = [LAPLACE, {**PURE, "count": 2}, node("Sequential", parts=[PAIR, LAPLACE])]
    sets = [{DOUBLE: 1}, {RESPONSE: 2}, {MASSES: 1, DOUBLE: 1}]
    for fields in ({}, {"by": "index"}, {"by": "value"}):
        assert options(node("Parallel", parts=parts, **fields)) == sets
    assert options(node("Parallel", parts=[node("Parallel", parts=parts), GAUSSIAN])) == [
        *sets, {NORMAL: 1}
    ]  # fmt: skip


@pytest.mark.parametrize("count", [2, 3])
def test_a_set_that_is_repeated_in_a_part_keeps_its_count(count):
    """A user pays for each repetition, and may be in another part each time."""
    inner = node("Parallel", parts=[LAPLACE, PAIR])
    twice = {("any of", (((DOUBLE, 1),), ((MASSES, 1),))): count}
    for repeated in ({**inner, "count": count}, node("Repeat", part=inner, count=count)):
        assert released(repeated) == twice
        assert options(node("Parallel", parts=[repeated, GAUSSIAN])) == [twice, {NORMAL: 1}]


MOVED = {"parts": [LAPLACE, PURE], "moves": [PAIR]}
WITHOUT_PROOF = [
    noise("Laplace", 1.0, 3 * TINY, dimension=3), noise("Gaussian", 1.0, 3 * TINY, dimension=9),
    noise("Laplace", 1.0, TINY), noise("Gaussian", 1.0, TINY), noise("Gaussian", 1.0, 0.0),
    noise("Laplace", 1.0, 0.0, arithmetic="idealised"),
    noise("DiscreteLaplace", 2.0, 2048), noise("DiscreteGaussian", 2.0, 2048),
    noise("DiscreteGaussian", 50.0, 1), noise("DiscreteLaplace", 2.0, 3, dimension=2),
    noise("DiscreteGaussian", 2.0, 3, dimension=2), group(node("Skellam", scale=2.0), 2),
    *(group(part, 2) for part in (
        SHOWN, PAIR, INTEGERS, NORMAL_INTEGERS, poisson(LAPLACE), poisson(PURE), subset(GAUSSIAN),
        noise("DiscreteLaplace", 2.0, 3), node("RandomizedResponse", k=3, keep=0.5),
        poisson(GAUSSIAN, relation="replace-one"), truncated(GAUSSIAN), shuffled(GAUSSIAN),
        allocated(GAUSSIAN), group(GAUSSIAN, 2), node("Parallel", parts=[GAUSSIAN]),
        node("Sequential", parts=[GAUSSIAN, PAIR]), node("Repeat", SHOWN, count=2),
        node("Claimed", mechanism={"kind": "Mine"}, loss=SHOWN), poisson(subset(GAUSSIAN)),
        node("MixtureOfGaussians", scale=1.0, weights=[1.0], shifts=[1.0]),
    )),
    *(poisson(part) for part in (
        poisson(GAUSSIAN), poisson(PURE), node("ZCDPLoss", rho=0.5),
        subset(GAUSSIAN),
        node("Parallel", parts=[GAUSSIAN, LAPLACE]), node("BoundedRangeLoss", epsilon=0.5),
        node("Sequential", parts=[GAUSSIAN, LAPLACE]), node("Sequential", parts=[GAUSSIAN, PURE]),
        {**LAPLACE, "count": 2}, {**PURE, "count": 21}, node("Sequential", parts=[LAPLACE, PURE]),
        node("MixtureOfGaussians", scale=1.0, weights=[1.0], shifts=[1.0]),
        allocated(GAUSSIAN, picks=5), allocated(GAUSSIAN, epochs=2),
        node("Sequential", parts=[{**PURE, "count": 11}, {**PAIR, "count": 10}]), group(PURE, 2),
    )),
    *(poisson(part, relation="replace-one") for part in (LAPLACE, PURE, PAIR, poisson(LAPLACE))),
    poisson(allocated(GAUSSIAN), relation="replace-one"), group(poisson(allocated(GAUSSIAN)), 2),
    subset(PAIR), subset({**PURE, "count": 2}), subset(INTEGERS), subset(NORMAL_INTEGERS),
    subset(node("Sequential", parts=[PURE, PAIR])), subset(poisson(GAUSSIAN)),
    truncated(LAPLACE), truncated(PURE), truncated(GAUSSIAN, 1.0), truncated(poisson(LAPLACE)),
    truncated(GAUSSIAN, relation="zero-out"), truncated(GAUSSIAN, 1.0, relation="replace-one"),
    truncated(LAPLACE, batch=9, relation="replace-one"),
    allocated(LAPLACE), allocated(PURE), allocated(poisson(GAUSSIAN)), allocated(LAPLACE, 1),
    allocated(node("Sequential", parts=[GAUSSIAN, LAPLACE])), allocated({**LAPLACE, "count": 2}),
    shuffled({**LAPLACE, "count": 2}), shuffled(node("Parallel", parts=[GAUSSIAN, LAPLACE])),
    node("Parallel", **MOVED), node("Parallel", by="value", **MOVED),
    node("Sequential", parts=[GAUSSIAN, node("Unknown")]), node("Unknown"),
    group(poisson(GAUSSIAN), 65), group(poisson(GAUSSIAN, 2.0**-99), 52),
    node("Repeat", node("Repeat", {**PURE, "count": 10**12}, count=10**7), count=1),
]  # fmt: skip


@pytest.mark.parametrize("plan", WITHOUT_PROOF, ids=repr)
def test_a_plan_without_a_proof_is_refused(plan):
    with pytest.raises(NoProof):
        released(plan)


OUT_OF_RANGE = {
    "a number": (
        [(noise("Gaussian"), "scale"), (noise("Laplace"), "scale"), (GAUSSIAN, "mu"),
         (LAPLACE, "shift"),
         (node("ZCDPLoss", rho=0.5), "rho"), (INTEGERS, "scale"), (NORMAL_INTEGERS, "scale"),
         (noise("DiscreteLaplace", 2.0, 3), "scale"), (noise("DiscreteGaussian", 2.0, 3), "scale"),
         (node("MixtureOfGaussians", scale=1.0, weights=[1.0], shifts=[1.0]), "scale")],
        [0.0, -0.5, 2.0**-1000, 2.0**1000, 1, True, "1", None, [0.5]],
    ),
    "a number or 0": (
        [(noise("Gaussian"), "sensitivity"), (noise("Laplace"), "sensitivity"), (PURE, "epsilon"),
         (SHOWN, "epsilon"), (node("BoundedRangeLoss", epsilon=0.5), "epsilon"),
         (node("ZCDPLoss", rho=0.5, xi=0.5), "xi")],
        [-0.5, 2.0**1000, 1, True, "1", None],
    ),
    "a chance": (
        [(SHOWN, "delta"), (poisson(GAUSSIAN), "rate"), (truncated(GAUSSIAN), "rate"),
         (node("RandomizedResponse", k=3, keep=0.5), "keep")],
        [-2.0**-60, 1.0 + 2.0**-52, 1, True, None],
    ),
    "a whole number": (
        [(INTEGERS, "shift"), (NORMAL_INTEGERS, "shift"),
         (noise("DiscreteLaplace", 2.0, 3), "sensitivity"),
         (noise("DiscreteGaussian", 2.0, 3), "sensitivity"),
         (node("OnePass", PURE, batches=2), "batches"),
         (subset(LAPLACE), "population"), (truncated(GAUSSIAN), "records"),
         (truncated(GAUSSIAN), "batch"), (shuffled(GAUSSIAN), "batches"),
         (allocated(GAUSSIAN), "steps"),
         (allocated(GAUSSIAN), "epochs"), (allocated(GAUSSIAN), "picks"),
         (group(LAPLACE, 2), "size"),
         (noise("Gaussian"), "dimension"), (noise("DiscreteLaplace", 2.0, 3), "dimension")],
        [0, -1, 2**60, 1.0, True, "1"],
    ),
    "picks": ([(allocated(GAUSSIAN), "picks")], [13]),
    "a sample": ([(subset(LAPLACE), "sample")], [-1, 5, 1.0, True]),
    "labels": ([(node("RandomizedResponse", k=3, keep=0.5), "k")], [1, 0, -2, 2**54, 3.0, True]),
    "a count": (
        [(PURE, "count"), (node("Sequential", parts=[]), "count"),
         (node("Repeat", PURE, count=2), "count")],
        [-1, 10**15 + 1, 1.0, True, "2", None],
    ),
    "neighbours": (
        [(poisson(GAUSSIAN), "relation"), (truncated(GAUSSIAN), "relation"),
         (shuffled(GAUSSIAN), "relation"),
         (allocated(GAUSSIAN), "relation"), (subset(LAPLACE), "relation"),
         (node("Stated", PURE, relation="zero-out"), "relation"),
         (node("Claimed", mechanism={"kind": "Mine"}, loss=PURE), "relation")],
        ["remove", "", None, 0, "label"],
    ),
    "some neighbours": ([(poisson(GAUSSIAN), "relation"), (truncated(GAUSSIAN), "relation")],
     ["local-replace"]),
    "of an epoch": ([(shuffled(GAUSSIAN), "relation")], ["add-remove"]),
    "of an allocation": ([(allocated(GAUSSIAN), "relation")], ["replace-one"]),
    "of a subset": ([(subset(LAPLACE), "relation")], ["add-remove", "zero-out"]),
    "a word": (
        [(noise("Gaussian"), "arithmetic"), (noise("Laplace"), "arithmetic")],
        ["float", "", None, "Exact"],
    ),
    "groups": ([(node("Parallel", parts=[PURE]), "by")], ["user", "", None]),
    "a list": (
        [(node("Parallel", parts=[PURE]), "parts"), (node("Sequential", parts=[]), "parts"),
         (PAIR, "p"), (PAIR, "q"), (node("Parallel", parts=[PURE]), "moves"),
         (node("MixtureOfGaussians", scale=1.0, weights=[1.0], shifts=[1.0]), "weights")],
        [None, {}, "", 0.5],
    ),
    "a kind": ([(PURE, "kind"), (node("Sequential", parts=[]), "kind")],
     ["", None, 1, ["PureLoss"]]),
    "a claimed kind": (
        [(node("Claimed", mechanism={"kind": "Mine"}, loss=PURE), "mechanism")],
        [{"kind": ""}, {"kind": 1}, {}, "Mine", None],
    ),
    "masses": (
        [(PAIR, "p"), (PAIR, "q")],
        [[0.5, 0.25], [0.5, 0.5 + 2e-9], [0.5, 0.5 - 2e-9], [0.25, 0.25, 0.5], [1.0], [],
         [1.5, -0.5], [1, 0], [0.5, "0.5"]],
    ),
    "weights": (
        [(node("MixtureOfGaussians", scale=1.0, weights=[0.5, 0.5], shifts=[1.0, 0.0]), "weights")],
        [[0.5, 0.25], [0.5, 0.5 + 2e-9], [1.0], [1.5, -0.5], []],
    ),
    "shifts": (
        [(node("MixtureOfGaussians", scale=1.0, weights=[0.5, 0.5], shifts=[1.0, 0.0]), "shifts")],
        [[1.0], [1.0, -1.0], [1.0, 2.0**1000], [1, 0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_a_field_out_of_its_range_is_refused(name):
    places, values = OUT_OF_RANGE[name]
    for (plan, key), value in itertools.product(places, values):
        assert released(plan) is not None
        with pytest.raises(ProofError):
            released({**plan, key: value})


LARGEST = [
    (subset(LAPLACE), "population", 10**15), (truncated(GAUSSIAN), "records", 10**15),
    (truncated(GAUSSIAN), "batch", 10**15), (shuffled(GAUSSIAN), "batches", 10**9),
    (allocated(GAUSSIAN), "steps", 10**7), (allocated(GAUSSIAN), "epochs", 10**6),
    (noise("Gaussian", arithmetic="idealised"), "dimension", 2**53), (INTEGERS, "shift", 2047),
    (node("OnePass", PURE, batches=2), "batches", 2**53), (PURE, "count", 10**15),
    (node("RandomizedResponse", k=3, keep=0.5), "k", 2**53), (group(GAUSSIAN, 2), "size", 10**6),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "key", "largest"), LARGEST, ids=repr)
def test_a_number_is_read_up_to_its_limit(plan, key, largest):
    assert released({**plan, key: largest})
    with pytest.raises((NoProof, ProofError)):
        released({**plan, key: largest + 1})


REQUIRED = {
    "kind": PURE, "epsilon": PURE, "mu": GAUSSIAN, "shift": INTEGERS, "scale": INTEGERS,
    "delta": SHOWN,
    "p": PAIR, "rate": poisson(GAUSSIAN), "part": poisson(GAUSSIAN), "size": group(LAPLACE, 2),
    "count": node("Repeat", PURE, count=2), "batches": shuffled(GAUSSIAN),
    "steps": allocated(GAUSSIAN),
    "batch": truncated(GAUSSIAN), "records": truncated(GAUSSIAN), "sample": subset(LAPLACE),
    "population": subset(LAPLACE), "parts": node("Parallel", parts=[PURE]),
    "relation": node("Stated", PURE, relation="zero-out"),
    "loss": node("Claimed", mechanism={"kind": "Mine"}, loss=PURE),
    "mechanism": node("Claimed", mechanism={"kind": "Mine"}, loss=PURE),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUIRED)
def test_a_field_that_is_missing_or_unknown_is_refused(name):
    plan = REQUIRED[name]
    assert released(plan)
    with pytest.raises(ProofError):
        released({key: value for key, value in plan.items() if key != name})
    with pytest.raises(ProofError, match="unknown"):
        released({**plan, "more": 1.0})


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([], "the plan must be a table"), ("PureLoss", "the plan must be a table"),
        ({}, "the plan has no field 'kind'"), ({"kind": 3}, "kind of the plan is wrong"),
        ({"kind": ""}, "kind of the plan is wrong"),
        ({"kind": "PureLoss"}, "PureLoss has no field 'epsilon'"),
        ({"kind": "PureLoss", "epsilon": 0.5, "more": 1}, "unknown 'more' in PureLoss"),
        ({"kind": "Sequential", "parts": [3]}, "the plan must be a table"),
    ],
)  # fmt: skip
def test_a_message_names_the_node_and_its_field(plan, message):
    with pytest.raises(ProofError, match=message):
        read_plan(plan, decimal=False)


def test_masses_that_miss_their_sum_a_little_are_divided_by_it():
    low, high = 0.5 - 2.0**-31, 0.5 + 2.0**-31
    p, q = [low, 0.5], [0.5, high]
    exact = [[Fraction(x) / sum(map(Fraction, side)) for x in side] for side in (p, q)]
    assert released(node("PairLoss", p=p, q=q)) == {("pair", tuple(zip(*exact, strict=True))): 1}
    mixed = node("MixtureOfGaussians", scale=0.5, weights=p, shifts=[1.0, 3.0])
    side = tuple(zip(exact[0], (Fraction(1), Fraction(3)), strict=True))
    assert released(mixed) == {("mixture", Fraction(4), side, STILL): 1}


def test_numbers_are_floats_or_the_decimals_that_are_printed():
    plan = node(
        "Sequential", parts=[node("LaplaceLoss", shift=0.1), node("PureLoss", epsilon=1e-3)]
    )
    for decimal, numbers in ((True, ("1/10", "1/1000")), (False, (0.1, 1e-3))):
        shift, epsilon = map(Fraction, numbers)
        found = {("laplace", shift, 1, 0): 1, ("response", epsilon, ZERO): 1}
        assert released(plan, decimal=decimal) == found
    masses = node("PairLoss", p=[0.1, 0.9], q=[0.5, 0.5])
    assert released(masses, decimal=True) == released(masses, decimal=False)
    for key, plan in (("epsilon", PURE), ("delta", SHOWN), ("rate", poisson(GAUSSIAN))):
        with pytest.raises(ProofError):
            released({**plan, key: -0.0})


@pytest.mark.parametrize("nested", [
    lambda part: node("Sequential", parts=[part]), lambda part: node("Repeat", part, count=1),
    lambda part: node("Parallel", parts=[part]), lambda part: poisson(part, 1.0),
])  # fmt: skip
def test_a_plan_is_read_to_50_levels(nested):
    plans = itertools.accumulate(range(50), lambda part, _: nested(part), initial=LAPLACE)
    *_, last, deeper = plans
    assert released(last) == {DOUBLE: 1}
    with pytest.raises(ProofError, match="50 deep"):
        released(deeper)


def test_as_many_releases_are_read_as_a_limit_allows():
    largest = functools.reduce(
        lambda part, count: node("Repeat", part, count=count), (10**3, 10**15), LAPLACE
    )
    assert released(largest) == {DOUBLE: 10**18}
    with pytest.raises(NoProof, match="too many"):
        released(node("Repeat", {**LAPLACE, "count": 1001}, count=10**15))
    many = [node("PureLoss", epsilon=k / 8) for k in range(300)]
    assert len(released(node("Sequential", parts=many))) == 300
