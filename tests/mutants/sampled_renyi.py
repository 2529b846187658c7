"""Wrong bounds on samples of parts known by their Rényi curves: each takes a monkeypatch."""

import math

from accountant.amplification import sampled_renyi
from tests.mutants.edits import edit


def _squares(part, rate, order):
    """Return the second moment of the part's share alone."""
    chi = math.log(math.expm1(float(sampled_renyi._log_moments(part)[2])))
    return math.log(order * (order - 1) / 2) + 2 * math.log(rate) + chi, 1.0


def squares_are_enough(patch):
    """Keeps the second moment of a part alone, in a Poisson sample."""
    patch.setattr(sampled_renyi, "_log_excess_of_sample", _squares)


def squares_of_a_subset(patch):
    """Keeps the second moment of a part alone, in a sample of fixed size."""
    patch.setattr(sampled_renyi, "_log_excess_of_subset", _squares)


def gentle_curvature(patch):
    """Takes the sample's ratio for 1 where the record is absent."""
    edit(patch, sampled_renyi, "sampled_divergence", "2 - rate * (s + 2)", "2 + 0 * s")


def below_the_chord(patch):
    """Takes the lower end of a chord between whole orders."""
    edit(
        patch, sampled_renyi, "_between_integers", "share = np.clip(flat - n, 0.0, 1.0)",
        "share = np.zeros(flat.shape)",
    )  # fmt: skip


def losses_above_zero(patch):
    """Leaves out what losses below 0 add to the moment of a subset."""
    edit(
        patch, sampled_renyi, "_log_excess_of_subset",
        "j * log_q + log_curvature, log_curvature[0]", "j * log_q + log_curvature, -np.inf",
    )  # fmt: skip


MUTANTS = (
    squares_are_enough, squares_of_a_subset, gentle_curvature, below_the_chord, losses_above_zero,
)  # fmt: skip
