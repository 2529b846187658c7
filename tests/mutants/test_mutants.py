"""Every law of the registry catches its mutants, and holds of what they were made of."""

import functools
from types import FunctionType

import pytest

from accountant import Ledger
from accountant.accountants.base import Accountant
from tests.laws import registry
from tests.laws.common import INSTANCES
from tests.laws.registry import LAWS
from tests.mutants import (
    accountants,
    audit_arguments,
    books,
    calibrations,
    cells,
    directions,
    early_stops,
    gates,
    ledgers,
    lower_bounds,
    neighbour_chains,
    notions,
    power_cuts,
    refusals,
    repeated,
    replays,
    specimens,
)

# their own tests hold them against every instance, by the same values and more
ON_EVERY_INSTANCE = {"hockey_stick", "neighbours"}
# their own tests ask the same question of what is right, and it takes a second or more
HELD_BY_THEIR_OWN_TEST = {
    "repeated", "passes", "runs of random steps",
    "declared shapes", "moves of frames", "moves of joined frames", "moves of ranks and keys",
    "recorded noise", "recorded linear maps", "recorded laws", "exact weights", "exact levels",
    "exact comparisons",
    "replays: the_loss_of_a_sampled_release_is_that_of_its_mixture",
    "early_stops: an_honest_one_sided_release_is_seldom_convicted",
}  # fmt: skip
CASES = [(law, name) for law, found in LAWS.items() for name in found.mutants]


@functools.cache
def verdict_on_right(law, right):
    """The verdict on what is right; several mutants may share it."""
    return LAWS[law].violation(right)


@pytest.mark.parametrize(("law", "name"), CASES, ids=lambda one: one.replace(" ", "_"))
def test_the_law_catches_the_mutant(law, name):
    mutant = LAWS[law].mutants[name]
    by = () if mutant.tolerance is None else (mutant.tolerance,)
    found = LAWS[law].violation(mutant.wrong, *by)
    assert found != ""
    assert found.startswith(mutant.words)
    held = law in ON_EVERY_INSTANCE and mutant.right in INSTANCES
    if not (held or law in HELD_BY_THEIR_OWN_TEST):
        assert verdict_on_right(law, mutant.right) == ""


@pytest.mark.parametrize("law", LAWS)
def test_every_law_has_a_mutant(law):
    assert LAWS[law].mutants


def test_every_mutant_has_a_law():
    assert set(LAWS) >= HELD_BY_THEIR_OWN_TEST
    assert {cls.caught_by for cls in specimens.Mutant.__subclasses__()} <= set(LAWS)
    assert set(registry.LEDGER_MUTANTS) == set(registry.LEDGER_LAWS)
    assert set(registry.GATE_MUTANTS) == set(registry.GATE_LAWS)
    assert set(registry.PATCHED) == set(registry.PATCHED_LAWS)
    assert set(registry.NOTION_MUTANTS) == set(registry.NOTION_LAWS)
    named = {name for law in LAWS.values() for name in law.mutants}
    for module, kind in (
        (accountants, Accountant),
        (ledgers, Ledger),
        (calibrations, FunctionType),
        (notions, FunctionType),
        (gates, FunctionType),
        (replays, FunctionType),
        (books, FunctionType),
        (lower_bounds, FunctionType),
        (early_stops, FunctionType),
        (directions, FunctionType),
        (cells, FunctionType),
        (audit_arguments, FunctionType),
        (neighbour_chains, FunctionType),
        (power_cuts, FunctionType),
        (refusals, FunctionType),
        (repeated, FunctionType),
    ):
        own = [one for one in vars(module).values() if belongs(one, module, kind)]
        assert {one.__name__ for one in own} - named == set()


def belongs(one, module, kind):
    """Whether a module declares a class of a kind, or a function."""
    inside = getattr(one, "__module__", None) == module.__name__
    return inside and (isinstance(one, kind) or (isinstance(one, type) and issubclass(one, kind)))


@pytest.mark.parametrize(
    "family", registry.MUTANT_FAMILIES, ids=lambda module: module.__name__.split(".")[-1]
)
def test_every_family_has_its_mutants(family):
    own = [cls for cls in registry.WRONG_MECHANISMS if cls.__module__ == family.__name__]
    assert len(own) >= registry.MUTANT_FAMILIES[family]
