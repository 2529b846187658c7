"""Checkers that charge too little, or too much: by the case of the table that catches them."""

from accountant.verifier import (
    bounding_pairs,
    contour,
    loss_nodes,
    neighbours,
    pairs_of_sets,
    plan,
    sample_nodes,
)
from accountant.verifier.allocation import EpochTransform
from accountant.verifier.moments import MixtureMoments
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
    "group of zCDP that keeps xi": (
        "ZCDPLoss of a xi", Dropped(loss_nodes, "zcdp_loss", " * (size == 1)")
    ),
    "group of replaced records": (
        "PoissonSampled, replaced",
        Dropped(
            sample_nodes, "sampled_pair",
            'need(group == ALONE, "a group of replaced records has no proof here")', "pass",
        ),
    ),
    "group of a kind without groups": (
        "PairLoss",
        Dropped(
            plan, "released_by_leaf",
            'need(size == 1, f"a group of the kind {fields.name} has no proof here")', "pass",
        ),
    ),
    "records that move": (
        "Parallel with moves",
        Dropped(
            plan, "parallel",
            'need(not node.fields.take("moves", [], fits=is_list), '
            '"a record that moves has no proof here")',
            'node.fields.take("moves", [], fits=is_list)',
        ),
    ),
    "others that contribute nothing": (
        "TruncatedPoisson",
        Dropped(bounding_pairs, "truncated_sample", "((full, -ONE), ", "((full, ZERO), "),
    ),
    "noise on any grid": (
        "Laplace on a coarse grid", Dropped(loss_nodes, "noise_ratio", "is_fine or ", "True or ")
    ),
    "coordinates on any grid": (
        "Gaussian on a coarse grid", Dropped(loss_nodes, "noise_ratio", "is_fine or ", "True or ")
    ),
    "a set without what reveals all": (
        "Parallel, repeated", Dropped(pairs_of_sets, "pair_moved", " + pair.infinite")
    ),
    "a sample of replaced records": (
        "PoissonSampled of a replaced",
        Dropped(neighbours, "relations_of_parts", " - {REPLACE_ONE}"),
    ),
}  # fmt: skip
FROM_BELOW = {
    "a response of twice the range": (
        "BoundedRangeLoss",
        Dropped(loss_nodes, "bounded_range_loss", "epsilon / 2, ZERO", "epsilon, ZERO"),
    ),
}  # fmt: skip
FILES = {
    "Chernoff's constant": (
        "one moment", Dropped(contour, "chernoff_bound", "** b /", "** (b + 1) /")
    ),
    "lines anywhere": (
        "a line beyond the zeros", Dropped(MixtureMoments, "quadrature", " and is_analytic")
    ),
    "any last node": (
        "a last node before the peak",
        Dropped(MixtureMoments, "quadrature", " and centre < h * far_k"),
    ),
    "rules of any step": (
        "nodes on both sides of the peak",
        Dropped(MixtureMoments, "quadrature", 'need(share < 0.5, "a rule is too coarse")', "pass"),
    ),
    "a factor too many": (
        "an epoch's line of 5 nodes",
        Dropped(EpochTransform, "tail_factor", "(self.steps - 1)", "self.steps"),
    ),
    "a size on another line": (
        "an epoch's line of 3 nodes",
        Dropped(EpochTransform, "size_beyond", "(turn * turn / 2).exp() * phi", "phi"),
    ),
    "steps rounded up": (
        "picks that do not divide the steps",
        Dropped(sample_nodes, "random_allocation", "steps // picks", "-(-steps // picks)"),
    ),
}  # fmt: skip
