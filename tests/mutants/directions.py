"""Wrong losses, accountants and totals: each looks at one direction of two neighbours."""

from accountant.accountants import base, gdp, tight
from accountant.amplification import poisson_sampling
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.ledger import additive_notions, odometer, pure_dp_notion
from accountant.losses.loss import Loss
from tests.mutants.edits import edit


def epsilon_of_one_direction(patch):
    """Inverts the profile of one direction."""
    edit(
        patch, Loss, "epsilon_at", "for direction in {self, self.reversed}",
        "for direction in {self}",
    )  # fmt: skip


def delta_of_one_direction(patch):
    """Reads the profile of one direction."""
    edit(
        patch, Loss, "delta_at", "for direction in {self, self.reversed}", "for direction in {self}"
    )


def epsilon_of_the_better_direction(patch):
    """Takes the less of both."""
    edit(patch, Loss, "epsilon_at", "return max(direction.inverse", "return min(direction.inverse")


def one_sided_masses(patch):
    """Looks for impossible outcomes on one side."""
    edit(
        patch, Loss, "epsilon_at",
        "largest_infinity = max(self.infinity, self.reversed.infinity)",
        "largest_infinity = self.infinity",
    )  # fmt: skip


def one_direction_of_a_plan(patch):
    """Takes every plan for its own reverse."""
    for module in (base, tight):
        patch.setattr(module, "directions", lambda plan: (plan,))


def one_direction_in_sums(patch):
    """Adds up the costs of one direction."""
    patch.setattr(additive_notions, "worse_direction", lambda loss, cost_of: cost_of(loss))


def one_direction_of_epsilons(patch):
    """Adds up the largest losses of one direction."""
    patch.setattr(pure_dp_notion, "worse_direction", lambda loss, cost_of: cost_of(loss))


def one_direction_of_divergences(patch):
    """Adds up the divergences of one direction."""
    edit(
        patch, odometer.DivergencesNotion, "_cost",
        "for direction in {loss, loss.reversed}", "for direction in {loss}",
    )  # fmt: skip


def one_direction_caps_a_sample(patch):
    """Bounds a sampled divergence by that of one direction of its part."""
    edit(
        patch, PoissonSampled, "renyi",
        "np.maximum(loss.renyi(a), loss.reversed.renyi(a))", "loss.renyi(a)",
    )  # fmt: skip


def a_part_caps_a_sample_that_has_more(patch):
    """Bounds a sampled divergence by that of the outcomes that both laws of its part have."""
    edit(
        patch, PoissonSampled, "renyi",
        "np.maximum(np.maximum(loss.renyi(a), loss.reversed.renyi(a)), 0.0)",
        "np.maximum(loss.renyi(a), loss.reversed.renyi(a))",
    )  # fmt: skip


def weighs_a_sample_with_the_other_side(patch):
    """Gives the losses of a sampled pair the masses of the other distribution."""
    edit(
        patch, poisson_sampling._RecordAdded, "loss_pmf",
        "outcomes.loss[has_mass], outcomes.q", "outcomes.loss[has_mass], outcomes.p",
    )  # fmt: skip


def deltas_of_no_noise(patch):
    """Claims no delta of any mu."""
    edit(patch, gdp.GDP, "one_way_delta", " if mu else 0.0", " if not mu else 0.0")
