"""Wrong randomisers of numbers and vectors."""

import numpy as np

from accountant import PairLoss
from mechanisms.base.values import Ball, BoundedNumbers, finite_floats
from mechanisms.binary_label import BinaryLabel
from mechanisms.cube import CubeLinf, majority_probability
from mechanisms.hemisphere import HemisphereL2
from mechanisms.piecewise_uniform import PiecewiseUniform
from mechanisms.priv_unit import PrivUnit
from tests.mutants.specimens import Mutant

KEEP = 0.7310585786300049
BOTH_SIGNS = PairLoss((KEEP, 1 - KEEP), (1 - KEEP, KEEP))


class UncheckedNumbers(BoundedNumbers):
    def check(self, value):
        return finite_floats(value)


class UncheckedVectors(Ball):
    def check(self, value):
        return finite_floats(value)


class TwoKeepCoins(Mutant):
    """Two coins of ``keep`` must both agree."""

    honest = BinaryLabel(1.0, KEEP)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        up, *kept = rng.random((3, size)) < [[(1 + value) / 2], [self.keep], [self.keep]]
        return np.where(up == (kept[0] & kept[1]), self.length, -self.length)


class LengthMultiplied(Mutant):
    """Multiplies by ``2 keep - 1`` where it should divide."""

    honest = BinaryLabel(1.0, KEEP)
    length = 2 * KEEP - 1
    caught_by = "decoders"


class NumberNotClipped(Mutant):
    """Promises to clip larger numbers and does not: a probability exceeds 1."""

    honest = BinaryLabel(1.0, KEEP, "clip")
    values = UncheckedNumbers(1.0, True)
    caught_by = "normalised"

    @np.errstate(invalid="ignore")
    def log_density(self, *given):
        return BinaryLabel.log_density(self, *given)


class VectorNotClipped(Mutant):
    """Promises to clip greater vectors and does not."""

    honest = CubeLinf(3, 1.0, KEEP, "clip")
    values = UncheckedVectors(3, 1.0, np.inf, True)
    caught_by = "normalised"

    @np.errstate(invalid="ignore")
    def log_density(self, *given):
        return CubeLinf.log_density(self, *given)


class ConstantMultiplied(Mutant):
    """Multiplies by the constant of the dimension where it should divide."""

    honest = HemisphereL2(3, 1.0, KEEP)
    length = 0.5 / (2 * KEEP - 1)
    caught_by = "decoders"


class CoinBiasNotCorrected(Mutant):
    """The length undoes the random direction and forgets the coin, ``1 / (2 keep - 1)``."""

    honest = HemisphereL2(3, 1.0, KEEP)
    length = 2.0
    caught_by = "decoders"


class NotNormalised(Mutant):
    """A normal vector for a direction: its length is free."""

    honest = HemisphereL2(3, 1.0, KEEP)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        reports = self.honest.release(value, rng, size)
        return reports * np.sqrt(rng.chisquare(3, (size, 1)) / 3)


class CornersForDirections(Mutant):
    """Directions from a uniform point of the cube: too many lie near its corners."""

    honest = HemisphereL2(3, 1.0, KEEP)
    caught_by = "sampler"
    draws = 1_000_000

    def release(self, value, rng=None, size=None):
        drawn = rng.uniform(-1, 1, (size, 3))
        drawn *= self.length / np.sqrt(np.square(drawn).sum(axis=1, keepdims=True))
        own = (1 + (2 * self.keep - 1) * np.sqrt(value @ value)) / 2
        return np.where((drawn @ value > 0) == (rng.random(size) < own), *(drawn.T, -drawn.T)).T


class ShortVectorAsFullLength(Mutant):
    """A shorter vector is sent as one of full length."""

    honest = HemisphereL2(3, 1.0, KEEP)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return self.honest.release(value / np.sqrt(value @ value), rng, size)


class TiesInBothHalves(Mutant):
    """Corners halfway belong to both halves of the cube, and the claim is the same."""

    honest = CubeLinf(4, 1.0, KEEP)
    caught_by = "hockey_stick"

    def log_density(self, output, value, each=False):
        agree = (1 + np.sign(output) * (np.asarray(value) / self.radius)) / 2
        more, less = majority_probability(agree), majority_probability(1 - agree)
        # each half has (1 + 3/8) / 2 of the corners
        both = self.keep * (1 - less) + (1 - self.keep) * (1 - more)
        return np.log(both / (1 + 3 / 8) / 8)


class TiesForgotten(Mutant):
    """No corner is halfway, as in an odd dimension."""

    honest = CubeLinf(4, 1.0, KEEP)
    _halfway_share = 0.0
    caught_by = "normalised"


class NearestCorner(Mutant):
    """Rounds every coordinate to the nearer end, with bias."""

    honest = CubeLinf(3, 1.0, KEEP)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return self.honest.release(np.sign(value), rng, size)


class CapMassIgnored(Mutant):
    """The loss of the coin alone, as if the cap were half of the sphere."""

    honest = PrivUnit(3, 0.25, 0.6199119)
    loss = PairLoss((0.6199119, 1 - 0.6199119), (1 - 0.6199119, 0.6199119))
    caught_by = "hockey_stick"


class OneDimensionMore(Mutant):
    """Beta(p/2, p/2) for the height in the cap, where it is Beta((p-1)/2, (p-1)/2)."""

    honest = PrivUnit(3, 0.25, 0.6199119)
    caught_by = "decoders"

    def release(self, value, rng=None, size=None):
        reports = PrivUnit(4, 0.25, 0.6199119).release(np.append(value, 0.0), rng, size)[:, :3]
        return reports * self.length / np.sqrt(np.square(reports).sum(axis=1, keepdims=True))


class HalfTheOdds(Mutant):
    """The loss of the coin alone, which is half: the piece is narrower than the rest."""

    honest = PiecewiseUniform(1.0, 0.6224593312018546)
    loss = PairLoss((0.6224593312018546, 1 - 0.6224593312018546),
                    (1 - 0.6224593312018546, 0.6224593312018546))  # fmt: skip
    caught_by = "hockey_stick"


class PieceNotLeftOut(Mutant):
    """The rest is drawn from the whole interval."""

    honest = PiecewiseUniform(1.0, 0.6224593312018546)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        low = ((self.reach + 1) * value - (self.reach - 1)) / 2
        piece = low + rng.random(size) * (self.reach - 1)
        anywhere = rng.uniform(-self.reach, self.reach, size)
        return np.where(rng.random(size) < self.keep, piece, anywhere)


class VarianceOfZero(Mutant):
    """The variance of the number 0, whatever the number."""

    honest = PiecewiseUniform(1.0, 0.6224593312018546)
    caught_by = "decoders"

    def variance(self, value):
        return self.honest.variance(0.0 * value)
