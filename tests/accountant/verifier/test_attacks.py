"""Files that were made to be proved although their claim is false, and files that take long."""

import hashlib
import math
from collections import Counter
from fractions import Fraction

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import ctx

from accountant.verifier import ProofError, methods, verdict, verify
from accountant.verifier.bounding_pairs import bounding_pair
from accountant.verifier.document import NoProof
from accountant.verifier.methods import mirrored_mixture
from accountant.verifier.verdict import directions, is_mirrored
from tests.accountant.verifier.written_proofs import document

PURE = {"kind": "PureLoss", "epsilon": 1.0}
GAUSSIAN = {"kind": "GaussianLoss", "mu": 1.0}


def entry(road, direction="forward", bits=128, **more):
    return {"way": 0, "direction": direction, "road": road, "bits": bits, **more}


def proof(plan, delta, ends, above, below=None):
    lower, upper = ends
    numbers = {"delta": delta, "lower": lower, "upper": upper}
    numbers = {key: float(value).hex() for key, value in numbers.items()}
    return document({"proof": 1, "plan": plan, **numbers, "above": above, "below": below})


MOMENT = {"a": 8.0, "b": 0.0, "h": 1.0, "smooth": 0.0}
MOMENT = {name: value.hex() for name, value in MOMENT.items()} | {"nodes": 1, "rules": []}


def verdict_of(plan, delta=1e-5, ends=(0.0, 50.0), roads=("enumeration",), directions=("forward",)):
    above = [entry(roads[0], one) for one in directions]
    return verify(proof(plan, delta, ends, above, entry(roads[-1]) if ends[0] else None))


@pytest.mark.parametrize(
    ("plan", "delta", "roads"),
    [
        # delta(5) = 0 is at least 0, but the largest loss is 1
        (PURE, 0.0, ("largest losses", "enumeration")),
        # delta is 1/2 from epsilon 0 on
        ({"kind": "ApproxLoss", "epsilon": 0.0, "delta": 0.5}, 0.5, ("enumeration",)),
    ],
    ids=["delta 0", "a constant delta"],
)
def test_a_lower_end_needs_more_than_delta(plan, delta, roads):
    found = verdict_of(plan, delta, (5.0, 5.0), roads)
    assert (found.word, found.reason.split(":")[0]) == ("PROVED UPPER", "forward, enumeration")


def test_the_lower_end_is_proved_up_to_where_delta_is_constant():
    plan = {"kind": "ApproxLoss", "epsilon": 1.0, "delta": 0.5}
    for lower, word in ((0.999999, "PROVED"), (1.000001, "PROVED UPPER")):
        above = [entry("enumeration")]
        delta = 0.5 + 1e-12  # the masses of the outcomes are not exact
        file = proof(plan, delta, (lower, 1.5), above, entry("enumeration"))
        assert verify(file).word == word


@pytest.mark.parametrize(
    ("ends", "has_below", "word", "reason"),
    [
        ((0.5, 1.0), True, "PROVED", ""),
        ((0.0, 1.0), False, "PROVED", ""),
        ((0.0, 1.0), True, "PROVED", ""),
        ((0.5, 1.0), False, "PROVED UPPER", "the file does not claim to prove the lower end"),
        ((1.0, 1.0), True, "PROVED UPPER", "forward, enumeration: delta at the lower end is"),
        ((0.5, 0.9), True, "NOT PROVED", "forward, enumeration: delta at the upper end is"),
    ],
)
def test_a_verdict_says_what_was_proved_and_of_which_bytes(ends, has_below, word, reason):
    below = entry("enumeration") if has_below else None
    file = proof(PURE, 1e-5, ends, [entry("enumeration")], below)
    found = verify(file)
    assert found.word == word
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)
    assert (found.lower, found.upper, found.delta, found.plan) == (*ends, 1e-5, PURE)
    assert found.digest == hashlib.sha256(file).hexdigest()


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 5.0])
def test_an_upper_end_needs_no_more_than_delta(epsilon):
    # Of masses that are exact in binary delta is 1/4 from epsilon 0 on, and its ball has no width.
    plan = {"kind": "PairLoss", "p": [0.25, 0.75], "q": [0.0, 1.0]}
    for delta, word in ((0.25, "PROVED"), (0.25 - 2**-54, "NOT PROVED"), (0.25 + 2**-54, "PROVED")):
        both = [entry("enumeration", one) for one in ("forward", "reversed")]
        assert verify(proof(plan, delta, (0.0, epsilon), both)).word == word


PROOF_OF_PURE = {
    "proof": 1, "plan": PURE, "delta": 1e-5, "lower": 0.5, "upper": 1.0,
    "above": [entry("enumeration")], "below": entry("enumeration"),
}  # fmt: skip


def verdict_with(**fields):
    """The verdict on a proof of which some fields are others; numbers are written as floats are."""
    changed = {**PROOF_OF_PURE, **fields}
    return verify(document({
        name: value.hex() if isinstance(value, float) else value for name, value in changed.items()
    }))  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"proof": 0}, {"proof": 2}, {"proof": True}, {"delta": 1.0}, {"delta": -(2.0**-60)},
        {"delta": 2.0}, {"upper": 1.5e300}, {"upper": -1.0}, {"lower": -0.5},
        {"lower": 1.0 + 2**-52},
        {"above": [entry("enumeration")] * 129}, {"above": {}}, {"above": None}, {"plan": None},
        {"above": [None]}, {"above": [entry("enumeration", bits=63)]}, {"note": "true"},
        {"above": [entry("enumeration", bits=4097)]}, {"above": [entry("enumeration", way=-1)]},
        {"above": [entry("enumeration", way=1)]}, {"above": [entry("enumeration", "backward")]},
        {"above": [entry("trust")]}, {"above": [entry("enumeration", nodes=3)]},
        {"below": entry("enumeration", path=3)}, {"below": {}}, {"below": entry("trust")},
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_field_out_of_its_range_is_no_proof(fields):
    with pytest.raises(ProofError):
        verdict_with(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"delta": 1 - 2.0**-53, "lower": 0.0}, {"upper": 1e3, "lower": 0.999},
        {"above": [entry("enumeration")] * 128}, {"above": [entry("enumeration", bits=64)]},
        {"above": [entry("enumeration", bits=4096)]}, {"below": entry("enumeration", path=[])},
        {"above": [entry("enumeration"), entry("enumeration", "reversed")]},
    ],
    ids=" ".join,
)  # fmt: skip
def test_fields_at_the_ends_of_their_ranges_are_read(fields):
    assert verdict_with(**fields).word == "PROVED"
    assert verdict_with(upper=1e300).upper == 1e300


def mixture(right, left):
    """A mixture whose shifts have these chances in tenths."""
    sides = (tuple((Fraction(w, 10), Fraction(m)) for m, w in one.items()) for one in (right, left))
    return "mixture", Fraction(1), *sides


MIRRORED = [
    mixture({0: 9, 1: 1}, {0: 9, -1: 1}), mixture({1: 10}, {-1: 10}),
    mixture({-1: 1, 0: 4, 2: 5}, {1: 1, 0: 4, -2: 5}),
]  # fmt: skip
NOT_MIRRORED = [
    mixture({0: 9, 1: 1}, {0: 10}), mixture({0: 10}, {0: 9, -1: 1}),
    mixture({0: 9, 1: 1}, {0: 8, -1: 2}), mixture({0: 9, 1: 1}, {0: 9, -2: 1}),
    mixture({-1: 1, 0: 8, 1: 1}, {0: 10}), mixture({0: 10}, {-1: 1, 0: 8, 1: 1}),
]  # fmt: skip


@pytest.mark.parametrize("release", [*MIRRORED, *NOT_MIRRORED])
def test_a_mixture_is_mirrored_where_both_directions_cost_the_same(release):
    x = [k / 100 for k in range(-1000, 1001)]
    p, q = (
        [sum(float(w) * math.exp(-((y - float(m)) ** 2) / 2) for w, m in side) for y in x]
        for side in release[2:]
    )
    forward, reversed_ = (
        sum(max(a - math.exp(0.1) * b, 0.0) for a, b in zip(*pair, strict=True)) / 250
        for pair in ((p, q), (q, p))
    )
    is_same = math.isclose(forward, reversed_, rel_tol=1e-6)
    assert is_mirrored(release) == is_same == (release in MIRRORED)


@pytest.mark.parametrize("release", [*MIRRORED, *NOT_MIRRORED])
def test_the_mirror_of_a_mixture_has_both_laws_exchanged_and_negated(release):
    kind, unit, *mirrored = mirrored_mixture(release)
    assert (kind, unit) == release[:2]
    negated = [{(w, -shift) for w, shift in side} for side in mirrored]
    assert negated == [set(release[3]), set(release[2])]
    assert mirrored_mixture((kind, unit, *mirrored)) == release
    gaussian = ("gaussian", Fraction(1))
    assert mirrored_mixture(gaussian) == gaussian


EPOCH = ("allocation", Fraction(1), 3)
METHODS = {
    # a method, the releases with their counts, and the function that bounds delta; None: no proof
    "a lattice": ("lattice", [(NOT_MIRRORED[0], 2)], "composed"),
    "outcomes": ("enumeration", [(NOT_MIRRORED[0], 2)], "delta_by_enumeration"),
    "one epoch": ("allocation", [(EPOCH, 1)], "delta_of_epoch"),
    "one epoch on a contour": ("contour", [(EPOCH, 1)], "delta_by_contour"),
    "a contour": ("contour", [(NOT_MIRRORED[0], 2), (EPOCH, 1)], "delta_by_contour"),
    "two epochs": ("allocation", [(EPOCH, 2)], None),
    "an epoch and more": ("allocation", [(EPOCH, 1), (("gaussian", Fraction(1)), 1)], None),
    "another release": ("allocation", [(("gaussian", Fraction(1)), 1)], None),
    "nothing": ("allocation", [], None),
    "another method": ("largest losses", [(EPOCH, 1)], None),
}


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_asked_of_the_releases_that_it_has_a_proof_for(name, back, monkeypatch):
    method, items, function = METHODS[name]
    asked = []
    for each in ("composed", "delta_by_enumeration", "delta_of_epoch", "delta_by_contour"):
        monkeypatch.setattr(
            methods, each,
            lambda *given, each=each, **more: asked.append((each, given, more)) or float,
        )  # fmt: skip
    monkeypatch.setattr(verdict.Budget, "remaining", 1e6)
    fields = object()
    mirrored = [(mirrored_mixture(one) if back else one, count) for one, count in items]
    if function is None:
        with pytest.raises(NoProof, match=f"this plan has no {method}"):
            methods.delta_bounds(method, items, back, fields, 0.5, above=True)
        assert asked == []
        return
    methods.delta_bounds(method, items, back, fields, 0.5, above=True)
    arguments = {
        "composed": ((items, back, fields), {"above": True}),
        "delta_by_enumeration": ((mirrored, back, 0.5), {}),
        "delta_of_epoch": ((EPOCH, back, fields, 0.5), {}),
        "delta_by_contour": ((mirrored, back, fields, 0.5), {}),
    }
    assert asked == [(function, *arguments[function])]


def test_directions_are_left_out_only_where_every_release_is_mirrored():
    gaussian, one_sided = ("gaussian", Fraction(1)), NOT_MIRRORED[0]
    single = {(0, False)}
    both = {(0, False), (0, True)}
    any_of = ("any of", (((gaussian, 2),), ((MIRRORED[0], 1),)))
    one_sided_set = ("any of", (((gaussian, 2),), ((gaussian, 1), (one_sided, 1))))
    for release, expected in (
        (gaussian, single), (("laplace", Fraction(1), 1, 0), single), (MIRRORED[0], single),
        (("bound", gaussian, one_sided), single), (("bound", one_sided, gaussian), both),
        (("pair", ((Fraction(1), Fraction(1)),)), both), (one_sided, both), (any_of, single),
        (("sampled laplace", Fraction(1), Fraction(1, 2)), both), (one_sided_set, both),
        (("allocation", Fraction(1), 3), both), (("any of", (((any_of, 1),),)), single),
        (("any of", (((one_sided_set, 1),),)), both),
    ):  # fmt: skip
        assert directions([Counter({release: 1})]) == expected
        assert directions([Counter({gaussian: 3, release: 2})]) == expected
    two = [Counter({gaussian: 1}), Counter({gaussian: 1, one_sided: 1})]
    assert directions(two) == {(0, False), (1, False), (1, True)}


@pytest.mark.parametrize("left_out", ["forward", "reversed"])
def test_each_direction_of_each_alternative_is_asked_for(left_out):
    plan = {"kind": "PairLoss", "p": [0.5, 0.5], "q": [0.25, 0.75]}
    above = [entry("enumeration", one) for one in ("forward", "reversed")]
    assert verify(proof(plan, 1e-5, (0.0, 1.0), above)).word == "PROVED"
    rest = [one for one in above if one["direction"] != left_out]
    for entries in (rest, rest * 2, []):
        found = verify(proof(plan, 1e-5, (0.0, 1.0), entries))
        assert (found.word, "no bound from above" in found.reason) == ("NOT PROVED", True)
    with pytest.raises(ProofError, match="way"):
        verify(proof(plan, 1e-5, (0.0, 1.0), [*above, {**above[0], "way": 1}]))


SAMPLED = {"kind": "PoissonSampled", "part": GAUSSIAN, "rate": 0.1}
LABELS = {"kind": "RandomizedResponse", "k": 3, "keep": 0.6}
BOTH = {"directions": ("forward", "reversed")}


def stated(part, relation):
    return {"kind": "Stated", "part": part, "relation": relation}


OTHER_NEIGHBOURS = {
    # a label that is exchanged is no record that is in the sample or not
    "a sample of labels": (
        {"kind": "PoissonSampled", "part": LABELS, "rate": 0.1},
        {"roads": ("enumeration",), **BOTH},
    ),
    "a sample of exchanged records": ({**SAMPLED, "part": stated(GAUSSIAN, "replace-one")}, BOTH),
    # a record that is exchanged may move to another group, and is in both
    "exchanged between groups": (
        {"kind": "Parallel", "by": "value", "parts": [stated(GAUSSIAN, "replace-one")]},
        {},
    ),
    "two sorts in a sequence": (
        {"kind": "Sequential", "parts": [stated(GAUSSIAN, "replace-one"), SAMPLED]},
        {},
    ),
    "allocation of exchanged records": (
        {"kind": "RandomAllocation", "steps": 1, "part": stated(GAUSSIAN, "replace-one")},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_NEIGHBOURS)
def test_neighbours_of_different_sorts_have_no_proof(name):
    plan, how = OTHER_NEIGHBOURS[name]
    found = verdict_of(plan, **how)
    assert found.word == "NOT PROVED"
    assert "neighbours" in found.reason


@pytest.mark.parametrize("relation", ["replace", "add/remove", "local-replace", 1])
def test_other_names_of_neighbours_are_refused(relation):
    with pytest.raises(ProofError, match="relation of PoissonSampled"):
        verdict_of({**SAMPLED, "relation": relation}, **BOTH)


def test_a_part_that_nothing_reads_is_refused():
    with pytest.raises(ProofError, match="unknown 'parts' in GaussianLoss"):
        verdict_of({**GAUSSIAN, "parts": [{"kind": "GaussianLoss", "mu": 100.0}]})


def test_steps_between_whole_numbers_are_refused():
    for plan in (
        {"kind": "DiscreteLaplaceLoss", "scale": 1.0, "shift": 1.5},
        {"kind": "DiscreteLaplace", "scale": 1.0, "sensitivity": 1.5},
    ):
        with pytest.raises(ProofError, match="wrong or out of range"):
            verdict_of(plan, roads=("enumeration",))


def test_masses_that_miss_a_little_are_made_to_sum_to_1():
    """Else of 10^9 releases a third of the mass were lost, and with it what they cost."""
    p, count = [0.5 - 5e-10, 0.5], 10**9
    plan = {"kind": "PairLoss", "p": p, "q": p, "count": count}
    moved = {"kind": "ApproxLoss", "epsilon": 0.0, "delta": 0.9}
    plan = {"kind": "Sequential", "parts": [plan, moved]}
    zero, one, step = (x.hex() for x in (0.0, 1e-3, 1.0))
    line = {"a": one, "b": zero, "h": step, "smooth": zero, "nodes": 1, "rules": []}
    above = [entry("contour", one, **line) for one in ("forward", "reversed")]
    assert verify(proof(plan, 0.89, (0.0, 9.0), above)).word == "NOT PROVED"


def test_a_check_leaves_the_precision_of_others():
    before = ctx.prec
    line = entry("contour", bits=before + 64, **MOMENT)
    assert verify(proof(GAUSSIAN, 1e-5, (0.0, 50.0), [line])).word == "PROVED"
    assert ctx.prec == before


def test_the_largest_losses_are_those_of_known_releases_and_of_any_size():
    exchanged = {**SAMPLED, "relation": "replace-one"}
    for plan in (exchanged, {**PURE, "epsilon": 2.0**998, "count": 10**15}):
        found = verdict_of(plan, 0.0, roads=("largest losses",))
        assert found.word == "NOT PROVED"
        assert "largest loss" in found.reason


@pytest.mark.parametrize(
    ("delta", "ends", "word"),
    [
        (0.0, (0.0, 1.0), "PROVED"),  # ten times 0.1, which as a float is above 1/10
        (0.0, (0.0, 1.0 - 2**-53), "NOT PROVED"),
        (0.0, (1.0 - 2**-53, 1.0), "PROVED"),
        (1e-5, (0.0, 1.0), "NOT PROVED"),  # only at delta 0 the largest loss is epsilon
        (1e-5, (0.0, 1.5), "NOT PROVED"),
    ],
)
def test_at_delta_0_numbers_are_taken_as_they_are_printed(delta, ends, word):
    plan = {**PURE, "epsilon": 0.1, "count": 10}
    assert verdict_of(plan, delta, ends, roads=("largest losses",)).word == word


@pytest.mark.parametrize(("road", "delta"), [("largest losses", 0.0), ("enumeration", 1e-5)])
@pytest.mark.parametrize(("upper", "word"), [(0.5, "NOT PROVED"), (0.7, "PROVED")])
def test_each_direction_is_proved_by_its_own_losses(upper, word, road, delta):
    # The largest losses are ln 3/2 forward and ln 2 in reverse.
    plan = {"kind": "PairLoss", "p": [0.25, 0.75], "q": [0.5, 0.5]}
    for directions_of_file in (("forward", "reversed"), ("reversed", "forward")):
        found = verdict_of(plan, delta, (0.0, upper), (road,), directions=directions_of_file)
        assert found.word == word


def test_an_upper_end_is_that_of_the_pair_above_and_a_lower_end_of_the_pair_below():
    # A record of two responses may be in one or both: Laplace noise of shift 1 is above it.
    response, laplace = ("response", Fraction(1), Fraction(0)), ("laplace", Fraction(1), 1, 0)
    bound = ("bound", laplace, response)
    assert bounding_pair(bound, above=True) == laplace
    assert bounding_pair(bound, above=False) == response
    assert bounding_pair(("bound", bound, bound), above=True) == laplace
    assert bounding_pair(("bound", laplace, None), above=False) is None
    inside = ("any of", (((bound, 2),), ((response, 1), (bound, 1))))
    above = ("any of", (((laplace, 2),), ((response, 1), (laplace, 1))))
    assert bounding_pair(inside, above=True) == above
    for release in (response, laplace, MIRRORED[0]):
        assert bounding_pair(release, above=True) == bounding_pair(release, above=False) == release


@pytest.mark.parametrize(("road", "delta"), [("largest losses", 0.0), ("enumeration", 1e-5)])
def test_a_pair_below_proves_no_upper_end(road, delta):
    # The pair below a bounded range of 1 is a response of epsilon 1/2.
    plan = {"kind": "BoundedRangeLoss", "epsilon": 1.0}
    assert verdict_of(plan, delta, (0.0, 0.6), (road,)).word == "NOT PROVED"
    response = {"kind": "PureLoss", "epsilon": 0.5}
    assert verdict_of(response, delta, (0.0, 0.6), (road,)).word == "PROVED"


def test_a_set_of_too_many_parts_is_refused():
    pairs = [{"kind": "PairLoss", "p": [x, 1 - x], "q": [x / 2, 1 - x / 2]}
             for x in (k / 512 for k in range(1, 200))]  # fmt: skip
    plan = {"kind": "Repeat", "count": 2, "part": {"kind": "Parallel", "parts": pairs}}
    found = verdict_of(plan, roads=("enumeration",))
    assert found.reason == "a set of more than 128 parts to choose of"


SPREAD = [1 + i * 2.0**-20 for i in range(300)]
LONG = {
    # wide coefficients: the work grows with the square of their number
    "a long power": ({**PURE, "count": 299_000}, "enumeration"),
    # nodes of many shifts
    "many shifts": (
        {
            "kind": "MixtureOfGaussians",
            "scale": 1.0,
            "shifts": SPREAD,
            "weights": [1 / 300] * 300,
        },
        "lattice",
    ),
}


LATTICE = {"a": 8.0, "h": 0.001, "slack": 0.0}
LATTICE = {name: value.hex() for name, value in LATTICE.items()} | {
    "size": 2**10, "rules": [{"first": (-9.0).hex(), "step": (0.01).hex(), "count": 10**5}],
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_is_refused_before_it_starts(name, monkeypatch):
    plan, road = LONG[name]
    if name == "many shifts":
        monkeypatch.setattr(verdict, "BUDGET", 1e6)
    more = LATTICE if road == "lattice" else {}
    above = [entry(road, one, 4096, **more) for one in ("forward", "reversed")]
    assert verify(proof(plan, 1e-6, (0.0, 0.5), above)).reason == "the check would take too long"
