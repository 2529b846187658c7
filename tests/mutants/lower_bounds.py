"""Wrong lower bounds: a constant halved, so that the bound claims too much or too little."""

from audits.minimax.bounds import mean
from audits.minimax.information import contraction
from tests.mutants.edits import edit


def halves_the_energy(patch):
    """Takes half the variance of a density."""
    edit(patch, contraction, "_energy", "return n", "return n / 2")


def halves_the_data(patch):
    """Takes half the divergence of the data themselves."""
    edit(patch, contraction, "_data_divergence", "/ 2 * n", "/ 4 * n")


def halves_bhatia_and_davis(patch):
    """Takes half the greatest variance."""
    edit(patch, contraction, "distance_information", "by_variance = n", "by_variance = n / 2")


def halves_the_distances(patch):
    """Takes half the mean of the squared distances."""
    edit(
        patch, contraction, "distance_information", "mean_squared_tv / 2\n", "mean_squared_tv / 4\n"
    )


def halves_chi_squared(patch):
    """Takes half the chi-squared divergence."""
    edit(patch, contraction, "chi_squared_divergence", "energy = n", "energy = n / 2")


def halves_the_correlation(patch):
    """Takes half the correlation of an estimate near the null."""
    edit(patch, mean, "max_correlation", "2 / dimension", "2 / 2 / dimension")


def halves_the_leak(patch):
    """Takes half of what delta reveals."""
    edit(
        patch, mean, "max_correlation",
        "by_hyperbolic_sine = math", "by_hyperbolic_sine = -delta_of_group + math",
    )  # fmt: skip


def doubles_the_overlap(patch):
    """Takes twice the overlap of two distributions."""
    edit(patch, mean, "pair_risk", "common = 2", "common = 4")
