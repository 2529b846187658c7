"""Wrong recorders: noise that is lost, or taken for noise of another law, costs nothing."""

import numpy as np

from audits.recorded_runs import costs, followed_steps, followed_values, record
from audits.recorded_runs.draws import numpy_draws, parametric_draws
from tests.mutants.edits import edit


def unknown_losses_cost_nothing(patch):
    """A loss that is not known is left out of the cost."""
    edit(
        patch,
        record,
        "judged",
        "(not spent.unknown or bool(spent.infinite))",
        "True",
    )


def clipping_is_linear(patch):
    """Clipped Gaussian noise is taken for Gaussian noise."""
    patch.setattr(followed_values, "LINEAR", {*followed_values.LINEAR, np.clip})


def columns_without_signs(patch):
    """The factors of a linear map lose their signs."""
    edit(patch, followed_steps, "linear_map", "[np.asarray(function(", "[np.abs(function(")


def one_direction_is_both(patch):
    """The log of a uniform number is taken for Laplace noise, without a coin for its sign."""
    edit(patch, record, "spent_between", "laws.without_signs()", "laws")


def moves_out_of_range_are_free(patch):
    """A move that no noise makes is left out."""
    edit(patch, costs, "_least_gaussian_shift", "if is_solution", "if True")


def counts_of_one_row(patch):
    """The draws of all rows are counted as one."""
    edit(patch, parametric_draws, "_losses_of_counts", "int(number)", "1")


def last_probability_as_given(patch):
    """The last probability of a multinomial law is taken for what it says."""
    edit(patch, parametric_draws, "multinomial", "[others, last]", "[pvals]")


def removed_candidates_are_drawn_again(patch):
    """Draws without replacement are charged as independent ones."""
    edit(patch, parametric_draws, "_losses_without_replacement", "number <= 1 or", "True or")


def moves_beside_flat_noise_are_free(patch):
    """A mean that moves along an axis without noise costs nothing there."""
    edit(
        patch, numpy_draws, "gaussian_root", "np.where(is_noisy, variances, 0.0)", "variances + 1.0"
    )


MUTANTS = {
    "recorded noise": [unknown_losses_cost_nothing, clipping_is_linear],
    "recorded linear maps": [
        columns_without_signs,
        one_direction_is_both,
        moves_out_of_range_are_free,
    ],
    "recorded laws": [
        counts_of_one_row,
        last_probability_as_given,
        removed_candidates_are_drawn_again,
        moves_beside_flat_noise_are_free,
    ],
}
