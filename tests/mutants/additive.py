"""Wrong noise on numbers."""

import math

import numpy as np

from accountant import GaussianLoss, LaplaceLoss
from mechanisms import EXACT
from mechanisms.base.values import Reals
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.exact_noise.rounding_grid import round_to_grid
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace
from mechanisms.staircase import Staircase
from mechanisms.truncated_laplace import TruncatedLaplace
from tests.mutants.specimens import Mutant


class VarianceForScale(Mutant):
    """Takes the square root of the scale for the standard deviation."""

    honest = Gaussian(3.7306334)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return value + rng.normal(scale=math.sqrt(self.scale), size=size)


class DeviationForScale(Mutant):
    """Laplace noise whose standard deviation is the scale."""

    honest = Laplace(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return value + rng.laplace(scale=self.scale / math.sqrt(2), size=size)


class SeedInside(Mutant):
    """Seeds its noise itself: every release has the same."""

    honest = Laplace(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return self.honest.release(value, 0, size)


class OneNoiseForTheVector(Mutant):
    """The same noise on every coordinate: differences are shown as they are."""

    honest = Gaussian(3.7306334)
    caught_by = "batch"

    def release(self, value, rng=None, size=None):
        return value + self.scale * rng.standard_normal(size)


class UnitSensitivity(Mutant):
    """The loss of whole numbers that move by 1, where they move by 3."""

    honest = DiscreteLaplace(2.7, 3)
    loss = DiscreteLaplace(2.7, 1).loss
    caught_by = "hockey_stick"


class ContinuousClaim(Mutant):
    """The loss of the continuous Gaussian for the discrete one."""

    honest = DiscreteGaussian(3.75)
    loss = GaussianLoss(1 / 3.75)
    caught_by = "hockey_stick"


class ZeroCountedTwice(Mutant):
    """A size and a sign: +0 and -0 are both 0."""

    honest = DiscreteLaplace(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        sign = rng.choice([-1, 1], size)
        return value + sign * (rng.geometric(-math.expm1(-1 / self.scale), size) - 1)


class OneSided(Mutant):
    """Geometric noise upwards only."""

    honest = DiscreteLaplace(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return value + rng.geometric(-math.expm1(-1 / self.scale), size) - 1


class RateForProbability(Mutant):
    """The difference of two geometric draws of probability 1 / scale."""

    honest = DiscreteLaplace(2.7)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return value + rng.geometric(1 / self.scale, size) - rng.geometric(1 / self.scale, size)


class RoundedGaussian(Mutant):
    """Rounds continuous noise, which is wider than the discrete law."""

    honest = DiscreteGaussian(0.5)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return value + np.rint(rng.normal(scale=self.scale, size=size)).astype(int)


class TruncatedByClipping(Mutant):
    """Moves what is beyond the reach to the reach."""

    honest = TruncatedLaplace(1.0, 2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        bound = self.reach * self.scale
        return value + np.clip(rng.laplace(scale=self.scale, size=size), -bound, bound)


class NeverTruncated(Mutant):
    """Forgets the reach, beyond which one draw in 60,000 lies."""

    honest = TruncatedLaplace(1.0, 11.0)
    caught_by = "sampler"
    draws = 1_000_000

    def release(self, value, rng=None, size=None):
        return value + rng.laplace(scale=self.scale, size=size)


class TruncationIsFree(Mutant):
    """Forgets delta, which pays for what lies beyond the other's reach."""

    honest = TruncatedLaplace(1.0, 11.0)
    loss = LaplaceLoss(1.0)
    caught_by = "hockey_stick"


class FirstStairLeftOut(Mutant):
    """The stairs are counted from 1."""

    honest = Staircase(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        noise = self.honest.release(0.0, rng, size)
        return value + noise + np.sign(noise) * self.sensitivity


class UpperForLower(Mutant):
    """The share of the lower part of a stair for that of the upper part."""

    honest = Staircase(1.0, 1.0, 0.8)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return Staircase(1.0, 1.0, 0.2).release(value, rng, size)


class OneStairTooFew(Mutant):
    """The number moves by two stairs, and the loss is that of one."""

    honest = Staircase(1.0, 1.0)
    values = Reals(2.0, axes=0)
    caught_by = "hockey_stick"


class OneSideNormalised(Mutant):
    """The height that makes one side of the stairs a density."""

    honest = Staircase(1.0, 1.0)
    _top_density = 2 * honest._top_density
    caught_by = "normalised"


class ValueNotOnTheGrid(Mutant):
    """Exact noise on a value that was not rounded: its low-order bits show."""

    honest = Laplace(1.0, 1.0, EXACT)
    caught_by = "exact"

    def release(self, value, rng=None, size=None):
        return value + self.honest.release(0.0, rng, size)


class RoundedAfterwards(Mutant):
    """Floats first, and then the grid."""

    honest = Gaussian(3.7306334, 1.0, EXACT)
    caught_by = "exact"

    def release(self, value, rng=None, size=None):
        return round_to_grid(
            Gaussian(self.scale, arithmetic="idealised").release(value, rng, size), self.scale
        )


class StairOnTheNumberItself(Mutant):
    """Adds the noise of 0 to a number that was not rounded."""

    honest = Staircase(1.0)
    caught_by = "exact"

    def release(self, value, rng=None, size=None):
        return value + self.honest.release(0.0, rng, size)


class CutAroundTheNumberItself(Mutant):
    """Exact truncated noise on a number that was not rounded."""

    honest = TruncatedLaplace(1.0, 11.0)
    caught_by = "exact"

    def release(self, value, rng=None, size=None):
        return value + self.honest.release(0.0, rng, size)
