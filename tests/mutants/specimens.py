"""Wrong mechanisms, none of them registered: each is caught by the law named beside it."""

import inspect
import math
import types

import numpy as np

from accountant import BoundedRangeLoss, GaussianLoss, LaplaceLoss, PairLoss, PureLoss
from mechanisms import Mechanism
from mechanisms.exponential import Exponential
from mechanisms.families.selection import two_candidate_pair
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace
from mechanisms.noisy_max import NoisyMax
from mechanisms.randomized_response import RandomizedResponse


class Mutant:
    """The code of an honest mechanism, but for what a subclass gets wrong."""

    honest: Mechanism
    caught_by: str
    draws = 100_000  # of the law of the sampler

    def __getattr__(self, name):
        found = inspect.getattr_static(type(self.honest), name)
        if isinstance(found, types.MemberDescriptorType):
            return getattr(self.honest, name)  # a field
        # what the honest code calls of itself is the mutant's
        return found.__get__(self, type(self.honest)) if hasattr(found, "__get__") else found

    # looks like the honest mechanism to whoever asks for its class
    __class__ = property(lambda self: type(self.honest))


class LossTenPercentSmall(Mutant):
    """Claims ten percent less than it costs."""

    honest = Laplace(1.0)
    loss = LaplaceLoss(0.9)
    caught_by = "hockey_stick"


class SensitivityForgotten(Mutant):
    """The loss forgets that the sensitivity is 2."""

    honest = Gaussian(4.0, 2.0)
    loss = GaussianLoss(0.25)
    caught_by = "hockey_stick"


class FactorTwoForgotten(Mutant):
    """The exponential mechanism with range sensitivity / scale: the normaliser moves too."""

    honest = Exponential(2.0)
    loss = BoundedRangeLoss(0.5)
    caught_by = "hockey_stick"


class LaplaceAsBoundedRange(Mutant):
    """Laplace noisy max taken for the exponential mechanism."""

    honest = NoisyMax(2.0, 1.0, "laplace")
    loss = BoundedRangeLoss(1.0)
    caught_by = "neighbours"


class LazyWorstPair(Mutant):
    """Declares a pair that does not attain the profile, and does not say it is loose."""

    honest = Exponential(2.0)
    caught_by = "hockey_stick"

    def worst_pair(self, epsilon=0.0):
        return two_candidate_pair(3.0, 1.0)


class TightnessClaimed(Mutant):
    """Claims more than it costs without declaring it loose."""

    honest = Laplace(1.0)
    loss = PureLoss(1.0)
    caught_by = "hockey_stick"


class HalfTheNoise(Mutant):
    """Samples with half the declared scale."""

    honest = Laplace(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return Laplace(0.5).release(value, rng, size)


class ThreePercentLessNoise(Mutant):
    """Samples with 97 % of the declared scale: the limit of what the sampler law sees."""

    honest = Gaussian(3.7306334)
    caught_by = "sampler"
    draws = 1_000_000

    def release(self, value, rng=None, size=None):
        return Gaussian(0.97 * 3.7306334).release(value, rng, size)


class WrongLaw(Mutant):
    """Gaussian noise where Laplace noise was declared, of the same variance."""

    honest = Laplace(1.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return Gaussian(math.sqrt(2)).release(value, rng, size)


class TrueLabelAmongLies(Mutant):
    """The other label is drawn from all labels, the true one among them."""

    honest = RandomizedResponse(10, 0.2319693)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        keep = 0.2319693
        return np.where(rng.random(size) < keep, value, rng.integers(0, 10, size))


class LastLabelNeverDrawn(Mutant):
    """Off by one: the last label is never drawn by chance."""

    honest = RandomizedResponse(10, 0.2319693)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return np.minimum(self.honest.release(value, rng, size), 8)


class SelectsLeastScore(Mutant):
    """Selects the least score."""

    honest = NoisyMax(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return self.honest.release(-np.asarray(value), rng, size)


class OneNoiseForAll(Mutant):
    """Adds the same noise to every score, which decides nothing."""

    honest = NoisyMax(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        noise = rng.gumbel(scale=2.0, size=(size, 1))
        return np.argmax(np.asarray(value) + noise, axis=-1)


class WrongOutcomeMasses(Mutant):
    """Randomised response that claims the odds of truth against any lie."""

    honest = RandomizedResponse(10, 0.5)
    loss = PairLoss((0.5, 0.5), (0.5, 0.5))
    caught_by = "hockey_stick"
