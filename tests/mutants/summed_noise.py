"""Wrong bounds on sums of clients: each takes a monkeypatch."""

from accountant.losses import summed_noise
from accountant.losses.summed_noise import DiscreteGaussianSum, SkellamNoise, SummedNoise
from mechanisms.families import summed_noise as mechanisms_of_sums
from mechanisms.sum_of_clients import ClientVectors, SumOfClients
from tests.mutants.edits import edit


def drop_out_is_free(patch):
    """Counts the noise of those who dropped out."""
    edit(patch, SumOfClients, "survivors", "self.clients - self.dropout", "self.clients")


def no_variance_of_a_cell(patch):
    """Takes the curvature itself for the square of mu."""
    edit(patch, SummedNoise, "gdp_per_step", "(1 + math.sqrt(1 - curvature / 3))", "2")


def the_constant_of_narrow_noise_is_lost(patch):
    """Takes the curvature itself for the square of mu of noise that is hardly any."""
    edit(patch, SummedNoise, "gdp_per_step", "2 * math.pi * curvature", "curvature")


def curvature_of_continuous_noise(patch):
    """Takes discrete Gaussians for continuous ones, however narrow they are."""
    edit(
        patch, DiscreteGaussianSum, "curvature",
        "curvature_of_sum(self.scale, self.terms)", "0.9 / self.variance",
    )  # fmt: skip


def skellam_curves_like_a_gaussian(patch):
    """Takes Skellam noise for Gaussian noise of its variance."""
    edit(patch, SkellamNoise, "curvature", "2 * math.log(ratio)", "1 / variance")


def one_share_for_all(patch):
    """Convolves one share less than there are."""
    edit(patch, DiscreteGaussianSum, "log_masses", "while remaining:", "while remaining > 1:")


def variances_add_as_scales(patch):
    """Multiplies the scale, not the variance, by the number of shares."""
    edit(patch, SkellamNoise, "variance", "self.terms *", "self.terms**2 *")


def distance_of_one_coordinate(patch):
    """Rounds the length of a vector down, not its square."""
    edit(patch, mechanisms_of_sums, "loss_of_summed_noise", "math.sqrt(steps)", "float(shift)")


def a_shift_too_short(patch):
    """Lists the outcomes of a shift that is less by one."""
    edit(
        patch, mechanisms_of_sums, "loss_of_summed_noise",
        "return SummedNoiseLoss(noise, shift)",
        "return SummedNoiseLoss(noise, max(shift - 1, 1))",
    )  # fmt: skip


def closed_form_for_narrow_shares(patch):
    """Takes sums of narrow shares for one discrete Gaussian."""
    patch.setattr(summed_noise, "CLOSED_FROM", 0.1)


BOUNDS = (
    drop_out_is_free, no_variance_of_a_cell, the_constant_of_narrow_noise_is_lost,
    curvature_of_continuous_noise, skellam_curves_like_a_gaussian, one_share_for_all,
    variances_add_as_scales, distance_of_one_coordinate, a_shift_too_short,
    closed_form_for_narrow_shares,
)  # fmt: skip


def any_rounding(patch):
    """Accepts every rounding."""
    edit(patch, ClientVectors, "encode", "<= self.squared_norm", ">= 0")


def noise_of_survivors_alone(patch):
    """Forgets that the noise of those who may drop out can make a sum wrap around."""
    edit(
        patch, ClientVectors, "wrap_probability",
        "noise_of_sum(total.clients)", "noise_of_sum(total.survivors)",
    )  # fmt: skip


def signal_is_free(patch):
    """Forgets the sum of the vectors themselves."""
    edit(patch, ClientVectors, "wrap_probability", "np.array([norm / self.step])", "np.zeros(1)")


VECTORS = any_rounding, noise_of_survivors_alone, signal_is_free
