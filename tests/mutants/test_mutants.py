"""Every wrong mechanism is caught by the law it names, and its honest original is not."""

import pytest

from tests.laws import test_hockey_stick, test_neighbours, test_sampler
from tests.mutants.specimens import MUTANTS

LAWS = {
    "hockey_stick": test_hockey_stick.violation,
    "neighbours": test_neighbours.violation,
    "sampler": test_sampler.violation,
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda cls: cls.__name__)
def test_the_named_law_catches_the_mutant(mutant):
    assert LAWS[mutant.caught_by](mutant()) != ""
    assert LAWS[mutant.caught_by](mutant.honest) == ""
