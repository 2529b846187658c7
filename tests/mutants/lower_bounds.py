"""Wrong lower bounds: a constant halved, so that the bound claims too much or too little."""

from audits.minimax.bounds import accuracy, mean
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


def moves_one_person_less(patch):
    """Takes the trade-off once less than there are people."""
    edit(patch, accuracy, "group_chance", "people - before_turn", "people - before_turn - 1")


def cuts_at_the_error(patch):
    """Cuts answers at the error, where the people moved them beyond."""
    edit(patch, accuracy, "traces_of", "cuts = errors + people * steps", "cuts = errors")


def counts_failures_as_moves(patch):
    """Takes it that all answers are within their error."""
    edit(patch, accuracy, "traces_of", "(weights * steps * successes)", "(weights * steps)")


def counts_one_value_more(patch):
    """Takes it that the people reach one value more."""
    edit(patch, accuracy, "distinct_values", ") + 1.0", ") + 2.0")


def guesses_one_more(patch):
    """Takes it that guesses are among one value more."""
    edit(
        patch,
        accuracy,
        "log_chance_of_matches",
        "-counts @ np.log(values)",
        "-counts @ np.log(values + 1)",
    )


def only_reaches_the_error(patch):
    """Takes it that an answer at its error is beyond it."""
    edit(patch, accuracy, "shift_test", "(1 + ROUND_OFF)) + 1", "(1 + ROUND_OFF))")


def counts_one_wrong_answer_more(patch):
    """Takes Markov's bound for one wrong answer more."""
    edit(patch, accuracy, "packing_tests", "/ (wrong + 1)", "/ (wrong + 2)")


def takes_the_right_ends(patch):
    """Takes heights at the right ends of intervals, which are below the integral."""
    edit(patch, accuracy.Trace, "is_refuted", "edges[:-1], np.diff", "edges[1:], np.diff")
