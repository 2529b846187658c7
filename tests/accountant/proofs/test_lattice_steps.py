"""The step of a lattice in a proof suits the distances between the losses of the releases."""

import math
from fractions import Fraction

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.proofs.lattice_parameters import lattice_entry

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
RESPONSE = ("response", QUARTER, Fraction(0))
# The losses of a sample of one half of the response, and of Laplace noise moved by a quarter.
LOSSES_OF_HALF = [math.log((1 + math.exp(sign * 0.25)) / 2) for sign in (1, -1)]
RANGE_OF_HALF = LOSSES_OF_HALF[0] - LOSSES_OF_HALF[1]
LISTED = {  # releases whose outcomes are listed, and the least distance between two losses
    "response": (RESPONSE, 0.5),
    "response with a delta": (("response", QUARTER, Fraction(1, 10**6)), 0.5),
    "discrete Laplace": (("discrete laplace", Fraction(4), 3), 0.5),
    "discrete Gaussian": (("discrete gaussian", Fraction(4), 3), 3 / 16),
    "pair": (("pair", tuple((Fraction(p, 8), Fraction(q, 8)) for p, q in ((1, 3), (2, 4), (5, 1)))),
             math.log(3 / 2)),
    "sampled": (("sampled", HALF, (RESPONSE,)), RANGE_OF_HALF),
    "without replacement": (("subset", ("sampled", HALF, (RESPONSE,))), LOSSES_OF_HALF[0]),
}  # fmt: skip
CUT = {  # releases that are cut into cells, and the range of their losses
    "Laplace": (("laplace", QUARTER, 1, 0), 0.5),
    "sampled Laplace": (("sampled laplace", QUARTER, HALF), RANGE_OF_HALF),
    "Laplace without replacement": (
        ("subset", ("sampled laplace", QUARTER, HALF)), 2 * LOSSES_OF_HALF[0]),
}  # fmt: skip


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", [*LISTED, *CUT])
def test_the_distance_between_losses_is_a_multiple_of_the_step(name, back):
    release, distance = LISTED[name] if name in LISTED else CUT[name]
    step = float.fromhex(lattice_entry([(release, 8)], back, 0.5, 1e-3)["h"])
    steps = distance / step
    assert steps == pytest.approx(round(steps), rel=1e-9)
    # Of a listed release alone every loss is one step from the next one, or more.
    assert (round(steps) == 1) == (name in LISTED)
