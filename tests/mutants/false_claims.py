"""Checkers that charge a group too little: by the case of the table that catches them."""

from accountant.verifier import loss_nodes, sample_nodes
from tests.mutants.error_bounds import Dropped

MUTANTS = {
    "group of a Gaussian": (
        "GaussianLoss",
        Dropped(
            loss_nodes, "gaussian_loss", '(size * fields.number("mu")) ** 2',
            'fields.number("mu") ** 2',
        ),
    ),
    "group of a Gaussian by its root": (
        "GaussianLoss",
        Dropped(
            loss_nodes, "gaussian_loss", '(size * fields.number("mu")) ** 2',
            'size * fields.number("mu") ** 2',
        ),
    ),
    "group of a mechanism": (
        "Laplace", Dropped(loss_nodes, "laplace_mechanism", "size * ratio", "ratio")
    ),
    "group of a Laplace": (
        "LaplaceLoss", Dropped(loss_nodes, "laplace_loss", "size * fields", "fields")
    ),
    "group of a pure loss": (
        "PureLoss", Dropped(loss_nodes, "pure_loss", "size * fields", "fields")
    ),
    "group of a bounded range": (
        "BoundedRangeLoss", Dropped(loss_nodes, "bounded_range_loss", "size * fields", "fields")
    ),
    "group of zCDP by its root": (
        "ZCDPLoss", Dropped(loss_nodes, "zcdp_loss", "size**2 * fields", "size * fields")
    ),
    "group of zCDP that is claimed": (
        "Claimed", Dropped(loss_nodes, "zcdp_loss", "size**2 * fields", "fields")
    ),
    "one hit of a sampled group": (
        "PoissonSampled",
        Dropped(sample_nodes, "sampled_group", "sign * k * ONE", "sign * min(k, 1) * ONE"),
    ),
}  # fmt: skip
