"""Wrong sensitivities of strategies, and wrong noise for them: each takes a monkeypatch."""

import numpy as np

from accountant.correlated_noise import gram_bounds, poisson_groups, toeplitz
from accountant.correlated_noise.binary_tree import BinaryTree, _Patterns
from accountant.correlated_noise.participation import MinSeparation
from accountant.correlated_noise.toeplitz import Toeplitz
from mechanisms.exact_noise import whole_products
from mechanisms.matrix_mechanism import MatrixMechanism
from tests.mutants.edits import edit


def steps_between_are_counted(patch):
    """Takes the separation for the number of steps between two uses."""
    edit(patch, MinSeparation, "most", "self.separation", "(self.separation + 1)")


def any_coefficients_fall(patch):
    """Takes the earliest pattern where later ones meet more."""
    edit(patch, Toeplitz, "sensitivity_under", "and (np.diff(c) <= 0).all()", "")


def signs_are_believed(patch):
    """Adds up inner products where opposite vectors make all of them count."""
    edit(patch, gram_bounds, "greatest_of_epochs", "np.abs(met)", "met")


def signs_of_pairs_are_believed(patch):
    edit(patch, gram_bounds, "_best_pair", "2 * np.abs(met)", "2 * met")


def columns_never_meet(patch):
    """Adds up squared lengths, whatever the bands."""
    edit(patch, gram_bounds, "greatest_of_patterns", "len(gram) <= separation or", "True or")


def the_first_pattern_is_the_greatest(patch):
    """Takes the earliest pattern, whatever later ones meet."""
    edit(patch, gram_bounds, "greatest_of_patterns", ">= bound * (1 - EQUAL)", ">= 0")
    edit(patch, gram_bounds, "_earliest_pattern_bound", "for axis in (0, 1)",
         "for axis in ()")  # fmt: skip


def meets_what_came_before_alone(patch):
    """Bounds a step's inner products by those with earlier steps."""
    edit(patch, gram_bounds, "_row_bounds", "(_by_end(gram), gram)", "(_by_end(gram), 0.0 * gram)")


def a_leaf_has_no_parents(patch):
    """Counts the leaf and not the nodes above it."""
    edit(patch, BinaryTree, "sensitivity_under", "max(self.heights) + 1", "1")


def the_last_use_blocks_nothing(patch):
    """Lets a use in the next subtree be as near as one likes, and none further away."""
    edit(patch, _Patterns, "room", "max(-(-((1 << height) - start) // self.separation), 0)",
         "max(((1 << height) - start) // self.separation, 0)")  # fmt: skip


def nodes_above_both_are_forgotten(patch):
    """Leaves out the square of what a node has from both its children."""
    edit(patch, _Patterns, "_split", "value + added + uses * uses", "value + added + uses")


def windows_end_with_their_block(patch):
    """Forgets the uses of the block before."""
    made = toeplitz._window_sums

    def begun_alone(rows, uses):
        return made(rows, uses) if uses >= len(rows) else np.cumsum(rows[:uses], axis=0)

    patch.setattr(toeplitz, "_window_sums", begun_alone)


def a_group_of_fewer_steps(patch):
    """Rounds the steps of a group down."""
    edit(patch, poisson_groups, "cyclic_poisson", "-(-strategy.columns // taking_turns)",
         "strategy.columns // taking_turns")  # fmt: skip


def the_first_column_alone(patch):
    """Takes the first column for the longest of a banded matrix that varies."""
    edit(patch, poisson_groups, "cyclic_poisson", "longest.value, norm",
         "float(np.linalg.norm(strategy.diagonals[:, 0])), norm")  # fmt: skip
    patch.setattr(poisson_groups, "np", np, raising=False)


def rounding_is_free(patch):
    """Draws exact noise no wider than its scale."""
    patch.setattr(MatrixMechanism, "_rounding_moves", property(lambda self: 0.0))


def rows_round_for_nothing(patch):
    """Pays for the rounding of steps, not of rows."""
    edit(patch, MatrixMechanism, "_rounding_moves", "of_entries + of_steps + of_rows",
         "of_entries")  # fmt: skip


def entries_of_five_bits(patch):
    """Multiplies with shorter entries than those that are paid for."""
    patch.setattr(whole_products, "entry_exponent", lambda strategy: 5)


MUTANTS = [
    steps_between_are_counted, any_coefficients_fall, signs_are_believed,
    signs_of_pairs_are_believed, columns_never_meet, the_first_pattern_is_the_greatest,
    meets_what_came_before_alone,
    a_leaf_has_no_parents, the_last_use_blocks_nothing, nodes_above_both_are_forgotten,
    windows_end_with_their_block, a_group_of_fewer_steps, the_first_column_alone,
]  # fmt: skip
GRID_MUTANTS = [rounding_is_free, rows_round_for_nothing, entries_of_five_bits]
