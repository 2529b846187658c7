"""What the tests of the checker's parts share: time without a limit, and digits to spare."""

import math

import pytest


@pytest.fixture
def enough_time(monkeypatch):
    """A checker that is asked in parts has no limit of its whole work."""
    from accountant.verifier.balls import Budget  # it imports flint, which may be missing

    monkeypatch.setattr(Budget, "remaining", math.inf)


@pytest.fixture
def at_128_bits(enough_time):
    """The same, in numbers of 128 bits, as a proof is checked at least."""
    from flint import ctx

    with ctx.workprec(128):
        yield
