"""Every accountant against 20-digit truths that were found by an independent road.

`truth.json` was made in mpmath by exact enumeration (finite pairs), exact expansion (Laplace
mixtures), closed forms, and contour integrals recomputed at other steps, reaches and tilts; it
shares no code with the accountants.
"""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from accountant import (
    PLD,
    RDP,
    ZCDP,
    Advanced,
    ApproxLoss,
    Basic,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    PoissonSampled,
    PureLoss,
    Repeat,
    Sequential,
    Tight,
)

ROWS = json.loads((Path(__file__).parent / "truth.json").read_text())


def loss(kind, given):
    numbers = {key: value for key, value in given.items() if key != "direction"}
    match kind:
        case "gaussian":
            return GaussianLoss(**numbers)
        case "laplace":
            return LaplaceLoss(**numbers)
        case "pure":
            return PureLoss(numbers["eps0"])
        case "approx":
            return ApproxLoss(numbers["eps0"], numbers["delta0"])
        case "pair":
            return PairLoss(**numbers)
    inner = {
        "sampled-gaussian": lambda: GaussianLoss(numbers["mu"]),
        "sampled-laplace": lambda: LaplaceLoss(numbers["shift"]),
        "sampled-pair": lambda: PairLoss(numbers["p"], numbers["q"]),
    }[kind]()
    sampled = PoissonSampled(inner, numbers.get("q") if kind != "sampled-pair" else numbers["rate"])
    return sampled if given["direction"] == "remove" else sampled.reversed


def plan_of(row):
    plan = Sequential(Repeat(loss(kind, given), count) for kind, given, count in row["plan"])
    return plan.reversed if row["direction"] == "reverse" else plan


def name(row):
    parts = "+".join(f"{count}x{kind}" for kind, _, count in row["plan"])
    return f"{parts[:60]} {row['direction']} {row['delta']}"


def dots(row):
    """Whether a loss of the plan is only known point by point, or stands too far up a contour."""
    kinds = [kind for kind, _, _ in row["plan"]]
    return "sampled-laplace" in kinds or name(row).startswith("2xsampled-gaussian")


every_row = pytest.mark.parametrize("row", ROWS, ids=name)


@every_row
def test_tight_holds_the_truth(row):
    plan, delta, truth = plan_of(row), float(row["delta"]), float(row["epsilon"])
    both = row["direction"] == "both"
    tight = Tight(width=1e-8)
    found = tight.certify(plan, delta) if both else tight.certify_one_way(plan, delta)
    if math.isinf(truth):
        assert found.upper == math.inf
        return
    # delta and the parameters are floats, the truth is of the decimals they stand for
    slack = 1e-13 * truth + 1e-16
    assert found.lower - slack <= truth <= found.upper + slack
    assert found.upper - truth <= (5e-5 if dots(row) else 1.2e-8) * max(truth, 1e-12)
    if not dots(row):
        assert found.width <= 1.2e-8 * max(truth, 1e-12)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=name(row), marks=[pytest.mark.slow] * (i % 5 > 0))
            for i, row in enumerate(ROWS)],
)  # fmt: skip
def test_no_accountant_is_below_the_truth(row):
    plan, delta, truth = plan_of(row), float(row["delta"]), float(row["epsilon"])
    for one in (Basic(), Advanced(), ZCDP(), RDP(), PLD()):
        both = row["direction"] == "both"
        found = one.epsilon(plan, delta) if both else one.one_way_epsilon(plan, delta)
        assert max(found, 0.0) >= truth * (1 - 1e-13)


def test_the_table_is_what_it_was():
    assert len(ROWS) == 359
    assert sum(Fraction(row["delta"]) < Fraction("1e-40") for row in ROWS) > 40
