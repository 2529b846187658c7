"""Wrong certificates: each takes a monkeypatch, and breaks how they are computed."""

import functools
import math
from dataclasses import replace

import numpy as np

from accountant import (
    PoissonSampled,
)
from accountant.amplification.allocation import allocation_profile
from accountant.amplification.sampled_gaussian import sampled_gaussian_tail
from accountant.amplification.sampled_gaussian.sampled_gaussian_tail import (
    TruncatedSampledGaussians,
)
from accountant.composition.aliasing import AliasingBound
from accountant.composition.cgf import PlanCGF
from accountant.composition.composition import Composition
from accountant.composition.contour import Contour
from accountant.numerics import lognormal_cut
from accountant.numerics.exponential_sums import complex_power
from accountant.numerics.lognormal_cut import CutTransform
from accountant.numerics.lognormal_inversion import Line
from accountant.numerics.lognormal_rule import LogNormalRule


def aliases_forgotten(patch):
    made = AliasingBound.__init__

    def short(self, *given):
        made(self, *given)
        self.period /= 3

    patch.setattr(AliasingBound, "__init__", short)
    patch.setattr(AliasingBound, "log_bound", lambda self, epsilon: -math.inf)


def cut_off_too_early(patch):
    reach = Contour._find_cutoff
    patch.setattr(Contour, "_find_cutoff", lambda self: reach(self) / 6)
    patch.setattr(PlanCGF, "log_cf_bound", lambda self, a, u: np.full(u.shape, -80.0))


def smoothing_not_taken_off(patch):
    made = Contour.integrate

    def forgets(self):
        made(self)
        self._density = None
        return self

    patch.setattr(Contour, "integrate", forgets)


def smoothing_taken_off_the_upper_end(patch):
    bounds = Contour.bounds

    def wrong(self, epsilon):
        low, high = bounds(self, epsilon)
        return low, low if self.smoothing else high

    patch.setattr(Contour, "bounds", wrong)


def count_off_by_one(patch):
    patch.setattr(
        "accountant.losses.laplace.complex_power",
        lambda base, count: complex_power(base, count - 1),
    )


def one_direction(patch):
    patch.setattr("accountant.accountants.tight.directions", lambda plan: (plan,))


def mass_at_infinity_forgotten(patch):
    made = Composition.__init__

    def forgets(self, *given):
        made(self, *given)
        self.infinity = 0.0

    patch.setattr(Composition, "__init__", forgets)


def laplace_without_its_slope(patch):
    def atoms_only(shift, z):
        value = np.log(0.5 * np.exp(z * shift) + 0.5 * np.exp(-(z + 1) * shift))
        return value, np.zeros(value.shape)

    patch.setattr("accountant.losses.laplace._laplace_cgf", atoms_only)


def sampled_rate_doubled(patch):
    made = PoissonSampled.sampled_gaussian.fget
    doubled = property(lambda self: replaced(made(self)))
    patch.setattr(PoissonSampled, "sampled_gaussian", doubled)


def aliases_of_an_epoch_forgotten(patch):
    uncached_lines(patch)
    period = Line._wanted_period
    patch.setattr(Line, "_wanted_period", lambda self: period(self) / 5)
    patch.setattr(Line, "_log_alias", lambda self, gap: np.full(gap.shape, -math.inf))


def line_of_an_epoch_cut_off_too_early(patch):
    uncached_lines(patch)
    reach = Line._find_reach

    def short(self, cut):
        found, count = reach(self, cut)
        self._log_cut_off = -math.inf
        return found / 3, count

    patch.setattr(Line, "_find_reach", short)


def steps_of_an_epoch_off_by_one(patch):
    uncached_lines(patch)
    made = Line.__init__
    patch.setattr(
        Line, "__init__", lambda self, law, mu, steps, *rest: made(self, law, mu, steps - 1, *rest)
    )


def tail_of_a_log_normal_forgotten(patch):
    uncached_lines(patch)
    patch.setattr(LogNormalRule, "_outside", lambda self: (0.0, 0.0))


def rule_of_the_cut_too_coarse(patch):
    patch.setattr(lognormal_cut, "cut_transform", lognormal_cut.CutTransform)
    patch.setattr(lognormal_cut, "SPACINGS", (0.5,))
    patch.setattr(CutTransform, "_missed", lambda self, steps, k: 0 * k)


def steps_of_the_cut_off_by_one(patch):
    made = CutTransform._sums
    patch.setattr(CutTransform, "_sums", lambda self, steps, k: made(self, steps - 1, k))


def uncached_lines(patching):
    # lines of the right code are kept from one call to the next
    made = functools.lru_cache(allocation_profile._line.__wrapped__)
    patching.setattr(allocation_profile, "_line", made)


def replaced(sampled):
    return type(sampled)(sampled.mu, sampled.rate * 1.01, sampled.record_added)


def certain_violations_forgotten(patch):
    patch.setattr(TruncatedSampledGaussians, "sure_delta", lambda self, epsilon: (0.0, 0.0))


def certain_violations_of_one_release(patch):
    made = TruncatedSampledGaussians.sure_delta

    def alone(self, epsilon):
        members = [replace(member, count=1) for member in self.members]
        return made(TruncatedSampledGaussians(members), epsilon)

    patch.setattr(TruncatedSampledGaussians, "sure_delta", alone)


def mass_of_the_cut_kept(patch):
    curve, line = sampled_gaussian_tail.cut_curve, sampled_gaussian_tail.cut_line

    def keeps(rule):
        return lambda *given: rule(*given)._replace(lost=0.0)

    patch.setattr(sampled_gaussian_tail, "cut_curve", keeps(curve))
    patch.setattr(sampled_gaussian_tail, "cut_line", keeps(line))


MUTANTS = [
    aliases_forgotten, cut_off_too_early, smoothing_not_taken_off, count_off_by_one,
    smoothing_taken_off_the_upper_end, one_direction, mass_at_infinity_forgotten,
    laplace_without_its_slope, sampled_rate_doubled, aliases_of_an_epoch_forgotten,
    line_of_an_epoch_cut_off_too_early, steps_of_an_epoch_off_by_one,
    tail_of_a_log_normal_forgotten, rule_of_the_cut_too_coarse, steps_of_the_cut_off_by_one,
    certain_violations_forgotten, certain_violations_of_one_release, mass_of_the_cut_kept,
]  # fmt: skip
