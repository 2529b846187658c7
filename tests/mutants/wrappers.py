"""Wrong ways to wrap an honest mechanism."""

import numpy as np

from accountant import PureLoss
from mechanisms.clamped import Clamped
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.gaussian import Gaussian
from mechanisms.mapped import Mapped
from mechanisms.pure_from_approximate import PureFromApproximate
from mechanisms.randomized_response import RandomizedResponse
from tests.mutants.specimens import Mutant

CLAMPED = Clamped(DiscreteLaplace(1.0), -5.0, 6.0)
MAPPED = Mapped(RandomizedResponse(4, 0.4753668864186717), np.sign)
PURE = PureFromApproximate(Gaussian(5.0), 0.2, 3)


class RejectionInsteadOfClamping(Mutant):
    """Draws until it is inside, which tells of the value's distance to the ends."""

    honest = CLAMPED
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        drawn = self.inner.release(value, rng, size)
        while (beyond := (drawn <= self.low) | (drawn >= self.high)).any():
            value = int(np.clip(value, self.low + 1, self.high - 1))  # else it takes for ever
            drawn[beyond] = self.inner.release(value, rng, beyond.sum())
        return drawn


class WrappedAround(Mutant):
    """What leaves at one end comes in at the other."""

    honest = CLAMPED
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        drawn = self.inner.release(value, rng, size)
        return self.low + (drawn - self.low) % (self.high - self.low)


class EndMassWithoutTail(Mutant):
    """The probability of an end is that of this very number."""

    honest = CLAMPED
    caught_by = "normalised"

    def log_density(self, output, value, each=False):
        return self.inner.log_density(output, value, each)


class LowerTailAtBothEnds(Mutant):
    """At both ends the mass below."""

    honest = CLAMPED
    caught_by = "normalised"

    def log_density(self, output, value, each=False):
        below = self.inner.log_below(self.high, value)
        inside = self.honest.log_density(output, value, each)
        return np.where(np.asarray(output) == self.high, below, inside)


class HalfCostForClamping(Mutant):
    """Half the cost, because the ends hide something."""

    honest = CLAMPED
    loss = DiscreteLaplace(2.0).loss
    caught_by = "hockey_stick"


class FunctionOfTheValue(Mutant):
    """The function sees the value beside what was released."""

    honest = MAPPED
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return self.function(np.abs(self.inner.release(value, rng, size) - value))


class OnePreimageOnly(Mutant):
    """The probability of one output that the function maps there, not of all."""

    honest = MAPPED
    caught_by = "normalised"

    def log_density(self, output, value, each=False):
        return self.inner.log_density(output, value, each)


class SamplesOfTheUser(Mutant):
    """The public samples are drawn from the user's value."""

    honest = PURE
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        reports = self.honest.release(value, rng, size)
        reports[:, :-1] += value - self.reference_value
        return reports


class FirstOfTheOnes(Mutant):
    """The first sample whose bit is 1, not any of them."""

    honest = PURE
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        reports = self.honest.release(value, rng, size)
        bits = rng.random((size, self.candidates)) < self._bit_probabilities(
            reports[:, :-1], np.array(value)
        )
        reports[:, -1] = bits.argmax(axis=1)
        return reports


class ChoiceNotCharged(Mutant):
    """The loss of one bit, and not of what is chosen by all of them."""

    honest = PURE
    loss = PureLoss(0.1)
    caught_by = "hockey_stick"


class OddsNotBounded(Mutant):
    """Odds beyond the box are released as they are."""

    honest = PureFromApproximate(Gaussian(1.0), 0.2, 3)
    caught_by = "hockey_stick"

    def _bit_probabilities(self, samples, values):
        own = self.inner.terms(samples, values[..., None])
        odds = own - self.inner.terms(samples, np.asarray(self.reference_value))
        return np.minimum(np.exp(np.minimum(odds, 0.7)) / 2, 1 - 1e-9)
