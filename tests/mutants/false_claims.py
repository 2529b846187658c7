"""Checkers that charge a group too little: by the case of the table that catches them."""

from accountant.verifier import plan
from tests.mutants.error_bounds import Dropped

MUTANTS = {
    "group of a Gaussian": (
        "GaussianLoss",
        Dropped(plan, "_release", '(size * number("mu")) ** 2', 'number("mu") ** 2'),
    ),
    "group of a Gaussian by its root": (
        "GaussianLoss",
        Dropped(plan, "_release", '(size * number("mu")) ** 2', 'size * number("mu") ** 2'),
    ),
    "group of a mechanism": ("Laplace", Dropped(plan, "_release", "ratio *= size", "pass")),
    "group of a Laplace": (
        "LaplaceLoss", Dropped(plan, "_release", 'size * number("shift")', 'number("shift")')
    ),
    "group of a pure loss": (
        "PureLoss",
        Dropped(plan, "_release", 'size * number("epsilon", 0)  #', 'number("epsilon", 0)  #'),
    ),
    "group of a bounded range": (
        "BoundedRangeLoss",
        Dropped(
            plan, "_release", '"BoundedRangeLoss":\n            e = size * ',
            '"BoundedRangeLoss":\n            e = ',
        ),
    ),
    "group of zCDP by its root": (
        "ZCDPLoss", Dropped(plan, "_release", "size**2 * number", "size * number")
    ),
    "group of zCDP that is claimed": (
        "Claimed", Dropped(plan, "_release", "size**2 * number", "number")
    ),
    "one hit of a sampled group": (
        "PoissonSampled", Dropped(plan, "_sampled", "sign * k * ONE", "sign * min(k, 1) * ONE")
    ),
}  # fmt: skip
