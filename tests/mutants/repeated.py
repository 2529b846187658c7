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


def twice_is_enough(patch):
    """Charges a pure run twice, whatever the shape."""
    edit(patch, Repeated, "max_loss", "(2 + self.tries.shape) * run_loss", "1.5 * run_loss")


def poisson_is_free(patch):
    """Leaves out how often a Poisson number of runs meets the test of the other direction."""
    edit(patch, repeated, "_bound_at", "mean_term + mean * delta", "mean_term")
