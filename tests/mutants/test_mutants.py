"""Every wrong mechanism is caught by the law it names, and its honest original is not."""

import functools

import pytest

from tests.laws import (
    test_decoders,
    test_exact,
    test_hockey_stick,
    test_neighbours,
    test_normalised,
    test_sampler,
)
from tests.mutants import additive, local, selection, specimens, vectors, wrappers

LAWS = {
    "batch": test_sampler.batch_violation,
    "decoders": test_decoders.violation,
    "exact": test_exact.violation,
    "hockey_stick": test_hockey_stick.violation,
    "neighbours": test_neighbours.violation,
    "normalised": test_normalised.violation,
    "sampler": test_sampler.violation,
}
FAMILIES = {specimens: 10, additive: 10, selection: 10, local: 10, vectors: 10, wrappers: 5}
MUTANTS = specimens.Mutant.__subclasses__()


@functools.cache
def verdict_on_original(law, honest, draws):
    """The verdict on an original; several mutants may share it."""
    del draws  # the law counts them
    return LAWS[law](honest)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda cls: cls.__name__)
def test_the_named_law_catches_the_mutant(mutant, monkeypatch):
    monkeypatch.setattr(test_sampler, "DRAWS", mutant.draws)
    monkeypatch.setattr(test_hockey_stick, "PAIRS", 10)
    assert LAWS[mutant.caught_by](mutant()) != ""
    assert verdict_on_original(mutant.caught_by, mutant.honest, mutant.draws) == ""


@pytest.mark.parametrize("family", FAMILIES, ids=lambda module: module.__name__.split(".")[-1])
def test_every_family_has_its_mutants(family):
    assert sum(cls.__module__ == family.__name__ for cls in MUTANTS) >= FAMILIES[family]


def test_every_law_catches_some_mutant():
    assert {cls.caught_by for cls in MUTANTS} == set(LAWS)
