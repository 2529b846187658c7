"""One vocabulary of neighbours: members, their strings, today's aliases, and what is refused."""

import copy
import json
import pickle
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone

import algorithms
from accountant import (
    GaussianLoss,
    OnePass,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    SampledWithoutReplacement,
    Shuffled,
    ShuffledEpoch,
    Stated,
    Tight,
    TruncatedPoisson,
    explanation,
    from_dp_event,
    from_json,
    to_dp_event,
    to_json,
)
from accountant.plans.adjacency import Adjacency, check_relation
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    PrivateGeneralizedLinearModel,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    PrivateQuantiles,
    PrivateScaler,
    PrivateTopK,
)
from audits import Box, candidate_pairs, probe_sensitivity, search_pairs
from audits.neighbours.value_spaces import ALL_RELATIONS, ValueMoves
from mechanisms import LocalHashing, PrivUnit, UnaryEncoding

STRINGS = [
    "add-remove", "zero-out", "replace-one", "label-replace", "local-replace", "machine-replace",
]  # fmt: skip
ALIASES = {"replace": Adjacency.REPLACE_ONE, "add/remove": Adjacency.ADD_REMOVE}
WRONG = [
    "",
    "Replace",
    "replace one",
    "add_remove",
    "REPLACE_ONE",
    "sideways",
    1,
    None,
    ("replace",),
]


def test_the_strings_are_those_of_files_and_books():
    assert [str(one) for one in Adjacency] == STRINGS
    for text, one in zip(STRINGS, Adjacency, strict=True):
        assert one == text
        assert {text: 1}[one] == 1
        assert repr(one) == repr(text)
        assert f"{one}{one!r}{one:>20}" == f"{text}{text!r}{text:>20}"
        assert json.dumps({"relation": one}) == json.dumps({"relation": text})
        assert pickle.loads(pickle.dumps(one)) is copy.deepcopy(one) is one
        assert one.difference != one


@pytest.mark.parametrize("given", [*Adjacency, *STRINGS, *ALIASES])
def test_members_strings_and_aliases_are_accepted(given):
    meant = ALIASES.get(given) or Adjacency(given)
    assert check_relation("relation", given) is meant
    plan = Stated(GaussianLoss(1.0), given)
    assert plan.relation is meant
    assert plan == Stated(GaussianLoss(1.0), str(meant))
    assert hash(plan) == hash(Stated(GaussianLoss(1.0), str(meant)))
    assert repr(plan) == f"Stated(part=GaussianLoss(mu=1.0), relation={str(meant)!r})"
    assert f'"relation": "{meant.value}"' in to_json(plan)
    assert from_json(to_json(plan)) == plan
    assert explanation(1.0, 1e-6, given) == explanation(1.0, 1e-6, meant)


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_another_is_refused_with_those_allowed(wrong):
    every = "one of " + ", ".join(map(repr, STRINGS))
    for check in (lambda: check_relation("relation", wrong), lambda: Stated(PureLoss(1.0), wrong)):
        with pytest.raises(ParameterError) as caught:
            check()
        assert (caught.value.argument, caught.value.allowed) == ("relation", every)


@pytest.mark.parametrize("given", ["add-remove", "add/remove", Adjacency.ADD_REMOVE])
def test_plans_of_added_records(given):
    plan = PoissonSampled(GaussianLoss(1.0), 0.1, given)
    assert plan == PoissonSampled(GaussianLoss(1.0), 0.1)
    assert plan.relation is plan.reversed.relation is Adjacency.ADD_REMOVE
    assert from_dp_event(to_dp_event(plan), given) == plan
    assert "relation" not in to_json(plan)  # at its default
    with pytest.raises(ParameterError, match="one of 'replace-one', got"):
        SampledWithoutReplacement(GaussianLoss(1.0), 3, 99, given)


@pytest.mark.parametrize("given", ["replace-one", "replace", Adjacency.REPLACE_ONE])
def test_plans_of_replaced_records(given):
    plan = SampledWithoutReplacement(GaussianLoss(1.0), 3, 99, given)
    assert plan == SampledWithoutReplacement(GaussianLoss(1.0), 3, 99)
    assert plan.relation is Adjacency.REPLACE_ONE
    assert from_dp_event(to_dp_event(plan), given) == plan
    sampled = PoissonSampled(GaussianLoss(1.0), 0.1, given)
    assert sampled.relation is sampled.reversed.relation is Adjacency.REPLACE_ONE
    with pytest.raises(ParameterError, match="'add-remove', 'zero-out', 'replace-one', got"):
        from_dp_event(to_dp_event(plan), "label-replace")


def test_plans_of_blanked_records():
    gaussian = GaussianLoss(1.0)
    for plan in (
        PoissonSampled(gaussian, 0.1, "zero-out"),
        RandomAllocation(gaussian, 10, relation="zero-out"),
        TruncatedPoisson(gaussian, 0.1, 100, 5, "zero-out"),
        ShuffledEpoch(gaussian, 10),
        OnePass(gaussian, 10),
        OnePass(Stated(gaussian, "zero-out"), 10),
        OnePass(Stated(gaussian, "add-remove"), 10),
    ):
        assert plan.relation is plan.reversed.relation is Adjacency.ZERO_OUT
        assert from_json(to_json(plan)) == plan
        assert (plan + Stated(gaussian, "zero-out")).relation is Adjacency.ZERO_OUT
        with pytest.raises(ParameterError, match="relations do not mix"):
            (plan + Stated(gaussian, "add-remove")).relation  # noqa: B018
        with pytest.raises(ParameterError, match="stated for 'add-remove'"):
            Stated(plan, "add-remove")
    # a blank record costs a sample of coins what a removed one does
    for made in (lambda r: PoissonSampled(gaussian, 0.1, r),
                 lambda r: RandomAllocation(gaussian, 10, relation=r)):  # fmt: skip
        costs = {Tight().epsilon(made(one), 1e-6) for one in ("add-remove", "zero-out")}
        assert len(costs) == 1
    removed, blanked, replaced = (
        Tight(1e-3).epsilon(TruncatedPoisson(gaussian, 0.1, 100, 5, one), 1e-6)
        for one in ("add-remove", "zero-out", "replace-one")
    )
    # in a full batch a blank keeps the place, which another record takes where one is removed
    assert blanked <= removed <= replaced
    for refused in (
        lambda: SampledWithoutReplacement(gaussian, 3, 99, "zero-out"),
        lambda: PoissonSampled(Stated(gaussian, "zero-out"), 0.1),
        lambda: Parallel([Stated(gaussian, "zero-out")], by="value"),
    ):
        with pytest.raises(ParameterError):
            refused()
    with pytest.raises(ParameterError, match="a removed record moves others to other batches"):
        ShuffledEpoch(gaussian, 10, "add-remove")


def test_what_users_randomise_is_stated_for_their_own_record():
    for one in (LocalHashing.instances()[0], UnaryEncoding.instances()[0]):
        assert one.relation is Adjacency.LOCAL_REPLACE
        assert Shuffled(one, 100).relation is Adjacency.REPLACE_ONE
    assert PrivUnit.instances()[0].relation is Adjacency.LOCAL_REPLACE


def with_relation(given):
    lasso = {"epsilon": 1.0, "delta": 1e-6, "rounds": 3, "relation": given}
    return [PrivateLasso(**lasso), PrivateLogisticLasso(**lasso)]


@pytest.mark.parametrize(
    "given", ["replace", "add-remove", "replace-one", "add/remove", *Adjacency]
)
def test_estimators_take_them_and_give_back_what_was_given(given):
    meant = check_relation("relation", given)
    for one in with_relation(given):
        assert one.get_params()["relation"] is given
        assert clone(one).get_params()["relation"] is given
        if meant in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
            (default,) = [each for each in with_relation(meant) if type(each) is type(one)]
            assert one.plan((100, 3)) == default.plan((100, 3))
        else:
            with pytest.raises(ParameterError, match="one of 'add-remove', 'replace-one', got"):
                one.plan((100, 3))


def test_the_default_of_an_estimator_is_the_word_it_was():
    takers = [
        FrankWolfe, GaussianFrankWolfe, PrivateGeneralizedLinearModel, PrivateLasso,
        PrivateLinearRegression, PrivateLogisticLasso, PrivateLogisticRegression, PrivateQuantiles,
        PrivateScaler, PrivateTopK,
    ]  # fmt: skip
    every = [getattr(algorithms, name) for name in algorithms.__all__]
    classes = [one for one in every if isinstance(one, type)]
    assert [cls for cls in classes if "relation" in signature(cls).parameters] == takers
    for cls in takers:
        assert repr(signature(cls).parameters["relation"].default) == "'replace'"
        neighbours = getattr(cls, "neighbours", Adjacency.REPLACE_ONE)
        assert neighbours is Adjacency.REPLACE_ONE


@pytest.mark.parametrize("given", ["add-remove", "add/remove", "replace", "replace-one", "each"])
def test_audits_take_them(given):
    meant = ALIASES.get(given, given)
    box = Box(0.0, 1.0, (5,))

    def total(data):
        return float(np.sum(data))

    def release(data, rng, size):
        return np.sum(data) + rng.laplace(0, 5.0, size)

    def of(relation):
        pairs = [repr(one) for one in candidate_pairs(box, relation)]
        probe = probe_sensitivity(total, box, relation, 0.5, budget=200, rng=1)
        found = search_pairs(release, box, PureLoss(1.0), 2000, 1, relation)
        return pairs, probe.witness, repr(found.candidate), found.finding.witness

    assert of(given) == of(meant)


@pytest.mark.parametrize("wrong", [*WRONG, "label-replace", Adjacency.MACHINE_REPLACE], ids=repr)
def test_audits_refuse_another_with_those_allowed(wrong):
    box = Box(0.0, 1.0, (5,))
    for check in (
        lambda: candidate_pairs(box, wrong),
        lambda: probe_sensitivity(np.sum, box, wrong, 1.0),
        lambda: search_pairs(np.sum, box, PureLoss(1.0), 2000, 1, wrong),
    ):
        with pytest.raises(
            ParameterError, match="one of 'add-remove', 'replace-one', 'each', 'any', got"
        ):
            check()


def test_moves_of_a_value_are_no_adjacency():
    assert not {*map(str, ValueMoves)} & {*map(str, Adjacency), *ALIASES}
    assert list(map(str, ALL_RELATIONS)) == ["add-remove", "replace-one", "each", "any"]


def test_the_reverse_of_a_stated_plan_is_of_the_same_neighbours():
    pair, swapped = PairLoss((0.9, 0.1), (0.6, 0.4)), PairLoss((0.6, 0.4), (0.9, 0.1))
    assert Stated(pair, "replace-one").reversed == Stated(swapped, "replace-one")


def test_what_is_local_may_be_stated_for_labels_and_nothing_else():
    local = Stated(PureLoss(1.0), "local-replace")
    assert Stated(local, "label-replace").relation is Adjacency.LABEL_REPLACE
    for other in ("replace-one", "add-remove", "machine-replace"):
        with pytest.raises(ParameterError, match="stated for"):
            Stated(local, other)
    with pytest.raises(ParameterError, match="stated for"):
        Stated(Stated(PureLoss(1.0), "label-replace"), "local-replace")
