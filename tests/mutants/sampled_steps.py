"""Wrong bounds of runs whose steps use records at random: each takes a monkeypatch."""

from accountant.correlated_noise import balls_in_bins, chain_of_bins, spaced_poisson
from tests.mutants.edits import edit


def splits_keep_no_mean(patch):
    """Moves what lies between two points to the upper one."""
    edit(patch, chain_of_bins, "split_normal",
         "np.clip((moment - values[:-1] * mass) / np.diff(values), 0.0, mass)",
         "1.0 * mass")  # fmt: skip


def a_cycle_is_not_closed(patch):
    """Forgets that the last bins meet the first."""
    edit(patch, chain_of_bins, "_law_above", "slopes[1] * start", "0.0 * start")


def the_chain_below_spares_nothing(patch):
    """Splits what already has the whole variance."""
    patch.setattr(chain_of_bins, "SPLIT_VARIANCE", 0.0)


def far_bins_share_nothing(patch):
    """Takes bins whose inner product is not 0 for orthogonal ones."""
    edit(patch, balls_in_bins, "bounds_by_distance", "shared = float(circle[far])", "shared = 0.0")


def opposite_signs_cancel(patch):
    """Takes the inner products of columns for those of what a record can do."""
    edit(patch, balls_in_bins, "column_products",
         "_products(np.abs(diagonals))", "np.maximum(_products(diagonals), 0.0)")  # fmt: skip


def the_set_is_no_denser(patch):
    """Takes the uses of a cycle of groups: a chance of b times the share."""
    patch.setattr(spaced_poisson, "thinned_chance",
                  lambda rate, rest: rate / (1 + (rest - 1) * rate) * min(rest, 1.2))  # fmt: skip


def the_longest_bin_is_every_bin(patch):
    """Takes the greatest inner products for the least."""
    edit(patch, balls_in_bins, "bin_products", "float(signed[row, : floor.size - k].min())",
         "float(signed[row].max())")  # fmt: skip


MUTANTS = (
    splits_keep_no_mean, a_cycle_is_not_closed,
    the_chain_below_spares_nothing, far_bins_share_nothing, opposite_signs_cancel,
    the_set_is_no_denser, the_longest_bin_is_every_bin,
)  # fmt: skip
