"""Wrong bounds on the best of a random number of runs: each takes a monkeypatch."""

import functools

from accountant.amplification import repeated
from accountant.amplification.repeated import Repeated
from tests.mutants.edits import edit


def one_run_alone(patch):
    """Charges one run, whichever was the best."""
    patch.setattr(repeated, "_bound_at", lambda node, order: node.loss.renyi(order))


def the_number_is_free(patch):
    """Forgets what the number of runs, drawn until one stops, says of them."""
    patch.setattr(repeated, "_cost_of_stopping", functools.cache(lambda loss, tries: 0.0))


def the_mean_is_free(patch):
    """Leaves out the mean number of runs."""
    edit(patch, repeated, "_bound_at", "math.log(mean) / (order - 1)", "0.0 * order")


def poisson_is_free(patch):
    """Leaves out how often a Poisson number of runs meets the test of the other direction."""
    edit(patch, repeated, "_bound_at", "mean_term + mean * delta", "mean_term")


def one_run_is_as_likely_on_both(patch):
    """Forgets that a run may be bettered more often on the neighbour."""
    edit(patch, repeated, "_tests_of_one_run", "return np.minimum(", "return 0.0 * np.minimum(")


def the_greatest_ratio_is_halved(patch):
    """Takes half of the logarithm of the greatest ratio of both slopes."""
    edit(patch, repeated, "_tests_of_one_run", "float(np.max(", "0.5 * float(np.max(")


def the_polygon_is_below(patch):
    """Halves the heights of the polygon between its ends."""
    edit(patch, repeated, "profile_terms", "* (1 + ACCURACY)), 0.0)", "* 0.5), 0.0)")


def the_last_shift_is_left_out(patch):
    """The largest loss of the best run is that of one run."""
    edit(patch, Repeated, "max_loss", "max_loss + shift", "max_loss")
