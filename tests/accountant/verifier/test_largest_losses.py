"""The sums of largest losses, against their closed forms: exact where they are fractions."""

import math
from fractions import Fraction

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.verifier.document import NoProof
from accountant.verifier.largest_losses import largest_holds

THIRD, WIDER = Fraction(1, 3), 1 - Fraction(1, 2**46)
LAPLACE, ON_GRID = ("laplace", THIRD, 1, 0), ("laplace", THIRD, 1, 1)
INTEGERS, RESPONSE = ("discrete laplace", Fraction(5), 2), ("response", Fraction(1, 7), 0)
PAIR = ("pair", tuple((Fraction(p, 8), Fraction(q, 8)) for p, q in ((1, 3), (2, 4), (5, 1))))
SAMPLED = ("sampled", Fraction(1, 4), (PAIR,))
SAMPLED_LAPLACE = ("sampled laplace", Fraction(1, 2), Fraction(1, 4))


def any_of(*parts):
    return "any of", parts


# Sums that are fractions, which are both at least and at most themselves.
EXACT = {
    "Laplace": ([(LAPLACE, 3)], Fraction(1)),
    "integers": ([(INTEGERS, 10)], Fraction(4)),
    "response": ([(RESPONSE, 7), (LAPLACE, 1)], Fraction(4, 3)),
    "a set": ([(any_of([(LAPLACE, 1)], [(RESPONSE, 1), (INTEGERS, 1)]), 2)], Fraction(38, 35)),
    "sets in a set": (
        [(any_of([(any_of([(LAPLACE, 2)], [(RESPONSE, 3)]), 2)], [(INTEGERS, 1)]), 1)],
        Fraction(4, 3),
    ),
    "nothing": ([], Fraction(0)),
}
# Sums of logarithms: of P against Q, and of Q against P.
BALLS = {
    "pair": ([(PAIR, 3)], 3 * math.log(5), 3 * math.log(3)),
    "sampled": ([(SAMPLED, 2)], 2 * math.log(0.75 + 0.25 * 5), -2 * math.log(0.75 + 0.25 / 3)),
    "sampled Laplace": (
        [(SAMPLED_LAPLACE, 4)],
        4 * math.log1p(0.25 * math.expm1(0.5)),
        -4 * math.log1p(0.25 * math.expm1(-0.5)),
    ),
    "both": ([(PAIR, 1), (LAPLACE, 2)], math.log(5) + 2 / 3, math.log(3) + 2 / 3),
    "a set": (
        [(any_of([(PAIR, 1)], [(LAPLACE, 1), (RESPONSE, 1)], [(SAMPLED, 1), (LAPLACE, 3)]), 2)],
        2 * (math.log(2) + 1),
        2 * max(math.log(3), 1 - math.log(0.75 + 0.25 / 3)),
    ),
}  # fmt: skip
TINY = Fraction(1, 2**80)


pytestmark = pytest.mark.usefixtures("enough_time")


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_a_sum_of_fractions_is_compared_exactly(name, back):
    items, total = EXACT[name]
    assert largest_holds(items, back, total, above=True)
    assert largest_holds(items, back, total, above=False)
    assert largest_holds(items, back, total + TINY, above=True)
    assert not largest_holds(items, back, total + TINY, above=False)
    assert not largest_holds(items, back, total - TINY, above=True)
    assert largest_holds(items, back, total - TINY, above=False)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", BALLS)
def test_a_sum_of_logarithms_is_not_above_what_is_surely_more(name, back):
    items, *sums = BALLS[name]
    total = Fraction(sums[back])
    room = Fraction(1, 10**13)
    assert largest_holds(items, back, total + room, above=True)
    assert not largest_holds(items, back, total + room, above=False)
    assert not largest_holds(items, back, total - room, above=True)
    assert largest_holds(items, back, total - room, above=False)


def test_noise_on_a_grid_is_wider_than_declared_only_for_an_upper_end():
    assert largest_holds([(ON_GRID, 3)], False, WIDER, above=True)
    assert not largest_holds([(ON_GRID, 3)], False, WIDER - TINY, above=True)
    assert largest_holds([(ON_GRID, 3)], False, Fraction(1), above=False)
    assert not largest_holds([(ON_GRID, 3)], False, 1 + TINY, above=False)


@pytest.mark.parametrize(
    ("items", "back"),
    [
        ([(("gaussian", Fraction(1)), 1)], False),
        ([(("discrete gaussian", Fraction(1), 1), 1)], False),
        ([(("zcdp", Fraction(1), Fraction(0)), 1)], True),
        ([(("response", THIRD, Fraction(1, 100)), 1)], False),  # an outcome shows the record
        ([(("pair", ((Fraction(1, 2), Fraction(0)), (Fraction(1, 2), Fraction(1)))), 1)], False),
        ([(("pair", ((Fraction(0), Fraction(1, 2)), (Fraction(1), Fraction(1, 2)))), 1)], True),
        ([(any_of([(LAPLACE, 1)], [(("gaussian", Fraction(1)), 1)]), 1)], False),
        ([(LAPLACE, 1)] * 999, False),
    ],
)
@pytest.mark.parametrize("above", [False, True])
def test_a_loss_without_a_largest_value_proves_nothing(items, back, above):
    with pytest.raises(NoProof):
        largest_holds(items, back, Fraction(10**6 if above else 0), above=above)
    if len(items) == 999:
        assert largest_holds(items[1:], back, Fraction(998, 3), above=above)
