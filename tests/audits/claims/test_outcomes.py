"""The third outcome: too few runs, and parts of outputs that nothing could look into."""

import itertools
import math
import sys

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, PureLoss
from audits import (
    Box,
    Finding,
    Outcome,
    audit,
    audit_atoms,
    audit_bits,
    audit_family,
    audit_timing,
    probe_sensitivity,
    watch,
)
from audits.claims.findings import as_expected, could_refute, is_only_weak
from audits.classifiers.output_features import MAX_NUMBERS, output_features, unseen_parts
from mechanisms import Laplace

ONE = PureLoss(1.0)
SURE = 1 - 1e-6


class Handle:
    """An object with a number that nothing can read."""

    __slots__ = ()

    def __reduce_ex__(self, protocol):
        raise TypeError("a handle stays where it is")


def noisy(value, rng):
    return value + rng.laplace(), Handle()


def test_what_cannot_be_looked_into_is_named():
    found = audit(noisy, (0.0, 1.0), ONE, 2000, SURE, rng=1)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.unseen == ("output[1]: Handle",)
    early = watch(noisy, (0.0, 1.0), ONE, 1000, SURE, rng=1)
    assert (early.outcome, early.unseen) == (Outcome.INCONCLUSIVE, found.unseen)


def test_what_is_seen_convicts_beside_what_is_not():
    found = audit(lambda v, r: (v, Handle()), (0.0, 1.0), ONE, 1000, SURE, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    assert found.unseen == ("output[1]: Handle",)


def deep(levels):
    return [1.0] if levels == 0 else [deep(levels - 1)]


class Held:
    def __init__(self, inner):
        self.inner = inner


@pytest.mark.parametrize(
    ("output", "named"),
    [
        (object(), "output: object"),
        ({"a": [1.0, Handle()]}, "output['a'][1]: Handle"),
        (Held(Handle()), "output.inner: Handle"),
        (np.array([None, Handle()]), "output[1]: Handle"),
        (deep(20), f"output{'[0]' * 16}: nested too deeply"),
        (Held(noisy), "output.inner: function"),
        (sys.__stdout__, "output: TextIOWrapper"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_parts_are_named_by_path_and_type(output, named):
    found = audit(lambda v, r: output, (0.0, 1.0), ONE, 100, rng=1)
    assert found.unseen == (named,)
    assert found.outcome is Outcome.INCONCLUSIVE


def test_an_endless_iterator_is_read_for_a_while():
    found = audit(lambda v, r: itertools.count(v), (0, 1), ONE, 40, rng=1)
    assert found.outcome is Outcome.FALSIFIED
    assert len(found.unseen) == 1


def test_numbers_beyond_those_that_are_used_are_named():
    many = np.zeros((1, MAX_NUMBERS + 1))
    assert unseen_parts(many) == (f"output: numbers beyond the first {MAX_NUMBERS:,}",)
    assert unseen_parts(many[:, 1:]) == ()
    for one in ([many, 1.0], many.tolist()[0], {"a": many}):
        (named,) = output_features(one).unseen
        assert named.startswith(f"output: more than the first {MAX_NUMBERS:,} numbers")


def test_what_raises_when_it_is_read_is_named():
    class Rude:
        __slots__ = ()

        def __iter__(self):
            raise RuntimeError("no")

    found = audit(lambda v, r: Rude(), (0, 1), ONE, 100, rng=1)
    assert found.unseen == ("output: Rude, which raised RuntimeError",)


@pytest.mark.parametrize(
    ("claim", "few", "enough"),
    [(ONE, 40, 100), (PureLoss(5.0), 2000, 4000), (ApproxLoss(1.0, 1e-3), 40, 200),
     (GaussianLoss(2.0), 60, 400)],
)  # fmt: skip
@pytest.mark.parametrize("leaking", [True, False])
def test_too_few_runs_are_no_survival(claim, few, enough, leaking):
    """No output could have falsified the claim, not even that of a release without any noise."""

    def release(value, rng, size):
        return np.full(size, value if leaking else 0.0)

    found = audit(release, (0.0, 1.0), claim, few, SURE, rng=1)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert not could_refute(found, found.confidence)
    more = audit(release, (0.0, 1.0), claim, enough, SURE, rng=1)
    # they see a release without noise, and perhaps not yet one with half of it
    assert (more.outcome is Outcome.FALSIFIED) is leaking
    assert leaking or more.outcome is Outcome.SURVIVED or is_only_weak(more)
    assert could_refute(more, more.confidence)


def test_a_claim_that_allows_all_is_never_decided():
    found = audit(lambda v, r: v, (0.0, 1.0), PureLoss(50.0), 1000, rng=1)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.refutes(0.5) is False


def test_a_bound_without_a_claim_survives():
    assert audit(lambda v, r: v, (0, 1), runs=40, rng=1).outcome is Outcome.SURVIVED


def test_every_kind_of_audit_knows_too_few_runs():
    few = {"runs": 40, "confidence": SURE, "rng": 1}
    laplace = Laplace(1.0)
    assert audit(laplace, **few).outcome is Outcome.INCONCLUSIVE
    assert audit_bits(Laplace(1.0), (0.0, 1.0), **few).outcome is Outcome.INCONCLUSIVE
    early = watch(lambda v, r: 0.0, (0.0, 1.0), ONE, 30, SURE, rng=1)
    assert early.outcome is Outcome.INCONCLUSIVE
    assert audit_timing(laplace, (0.0, 1.0), 20, 1, SURE, 1).outcome is Outcome.INCONCLUSIVE
    assert audit_timing(laplace, (0.0, 1.0), 24, 1, SURE, 1).outcome is Outcome.SURVIVED
    never = probe_sensitivity(lambda x: 1 / 0, Box(0.0, 1.0, (3,)), budget=20, rng=1)
    assert never.outcome is Outcome.INCONCLUSIVE


def test_a_family_survives_if_each_member_does():
    pairs = [(0.0, 1.0), (0.0, 0.5)]
    few = audit_family(
        lambda v, r: v + r.laplace(), pairs, PureLoss(4.0), runs=200, confidence=SURE, rng=1
    )
    assert few.outcome is Outcome.INCONCLUSIVE
    more = audit_family(lambda v, r: v + r.laplace(), pairs, ONE, runs=600, rng=1)
    assert more.outcome is Outcome.SURVIVED


def test_no_outcome_and_no_finding_is_taken_for_a_truth_value():
    assert "__bool__" not in vars(Finding)
    assert "__bool__" not in vars(Outcome)
    assert "__len__" not in vars(Finding)


@pytest.mark.parametrize("outcome", Outcome)
def test_an_honest_subject_may_be_undecided_and_a_broken_one_must_fall(outcome):
    honest = outcome is not Outcome.FALSIFIED
    assert as_expected(outcome, Outcome.SURVIVED) is honest
    assert as_expected(outcome, Outcome.FALSIFIED) is not honest


def test_infinite_claims_are_not_decided():
    found = audit(lambda v, r: v, (0.0, 1.0), GaussianLoss(1.0), 1000, delta=0.0, rng=1)
    assert math.isinf(found.claim.epsilon_at(0.0))
    assert found.outcome is Outcome.INCONCLUSIVE


def test_atoms_name_what_nothing_can_look_into():
    def with_a_handle(value, rng):
        return "ok", [rng.integers(2), Handle()]

    found = audit_atoms(with_a_handle, (0, 1), ONE, 400, rng=1)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.unseen == ("output[1][1]: Handle",)
    leaking = audit_atoms(lambda v, rng: (v, Handle()), (0, 1), ONE, 400, rng=1)
    assert leaking.outcome is Outcome.FALSIFIED


TINY_RELEASES = {
    "a constant": lambda value, rng, size: np.zeros(size),
    "a word": lambda value, rng: "a",
    "three zeros": lambda value, rng, size: np.zeros((size, 3)),
    "a hundred zeros": lambda value, rng, size: np.zeros((size, 100)),
    "a coin": lambda value, rng, size: rng.integers(2, size=size),
    "noise": lambda value, rng, size: rng.laplace(size=size),
}


@pytest.mark.parametrize("name", TINY_RELEASES)
def test_ten_to_thirty_runs_are_too_few_and_no_error(name):
    for runs in (10, 12, 20, 30):
        for seed in range(4):
            found = audit(TINY_RELEASES[name], (0, 1), PureLoss(4.0), runs, rng=seed)
            assert found.outcome is not Outcome.FALSIFIED
        if name != "a word":
            audit_atoms(TINY_RELEASES[name], (0, 1), ONE, runs, rng=1)
            audit_bits(TINY_RELEASES[name], (0, 1), ONE, runs, rng=1)
