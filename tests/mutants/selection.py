"""Wrong choices among scores and answers."""

import numpy as np

from accountant import ApproxLoss, BoundedRangeLoss, PureLoss
from mechanisms.above_threshold import AboveThreshold
from mechanisms.exponential import Exponential
from mechanisms.families.key_counts import KeyCounts
from mechanisms.families.selection import log_probability_of_output
from mechanisms.laplace import Laplace
from mechanisms.noisy_max import NoisyMax
from mechanisms.partition_selection import PartitionSelection
from mechanisms.permute_and_flip import PermuteAndFlip
from mechanisms.run_length_exponential import RunLengthExponential, RunValues
from mechanisms.sparse_vector import SparseVector
from tests.mutants.specimens import Mutant


def first_true(found, none):
    return np.where(found.any(axis=-1), found.argmax(axis=-1), none)


class MonotoneClaimed(Mutant):
    """Half the cost, though scores may move against each other."""

    honest = NoisyMax(2.0, 1.0, "laplace")
    loss = PureLoss(0.5)
    caught_by = "hockey_stick"


class OneScoreMoves(Mutant):
    """Thinks that a record moves one score only: in the loss, and in the worst pair."""

    honest = NoisyMax(2.0)
    loss = BoundedRangeLoss(0.5)
    caught_by = "neighbours"

    def worst_pair(self, epsilon=0.0):
        return NoisyMax(2.0, 1.0, monotone=True).worst_pair(epsilon)


class SensitivityOfScoresForgotten(Mutant):
    """The range of scores that move by 1, where they move by 2."""

    honest = Exponential(2.0, 2.0)
    loss = BoundedRangeLoss(1.0)
    caught_by = "hockey_stick"


class OnePairOnly(Mutant):
    """The loss at one pair of score vectors, which is not the worst at every epsilon."""

    honest = Exponential(2.0)
    loss = BoundedRangeLoss(1.0).attained_pair
    caught_by = "hockey_stick"


class DividedByTwiceTheScale(Mutant):
    """Divides by twice the scale, which has the two already."""

    honest = Exponential(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return Exponential(2 * self.scale).release(value, rng, size)


class PermuteAndFlipAsBoundedRange(Mutant):
    """Permute and flip taken for the exponential mechanism."""

    honest = PermuteAndFlip(2.0)
    loss = BoundedRangeLoss(1.0)
    caught_by = "hockey_stick"


class NotPermuted(Mutant):
    """Flips in the order of the candidates."""

    honest = PermuteAndFlip(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        heads = np.exp((value - value.max()) / self.scale)
        return np.argmax(rng.random((size, value.size)) < heads, axis=-1)


class DrawnWithReplacement(Mutant):
    """Candidates are drawn with replacement, which is the exponential mechanism."""

    honest = PermuteAndFlip(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return Exponential(self.scale).release(value, rng, size)


class OneNoiseForTheBatch(Mutant):
    """Draws noise for one user and gives it to all."""

    honest = NoisyMax(2.0)
    caught_by = "batch"

    def release(self, value, rng=None, size=None):
        return np.argmax(value + rng.gumbel(scale=self.scale, size=value.shape[-1]), axis=-1)


class ThresholdWithoutNoise(Mutant):
    """Noise on the answers alone, of twice the scale, and the same claim."""

    honest = AboveThreshold(1.0, 2.0)
    caught_by = "hockey_stick"

    def release(self, value, rng=None, size=None):
        noisy = value + rng.laplace(scale=2 * self.scale, size=(size, np.size(value)))
        return first_true(noisy >= self.threshold, np.size(value))

    def log_density(self, output, value, each=False):
        above = -np.expm1(Laplace(2 * self.scale).log_below(self.threshold, value))
        below = np.cumprod(np.append(1.0, 1 - above))
        return log_probability_of_output(np.log(np.append(above, 1.0) * below), output, each)


class ThresholdForEachAnswer(Mutant):
    """Fresh noise on the threshold for every answer."""

    honest = AboveThreshold(1.0, 2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        noise = rng.laplace(scale=[[2 * self.scale], [self.scale]], size=(size, 2, np.size(value)))
        noisy, threshold = value + noise[:, 0], self.threshold + noise[:, 1]
        return first_true(noisy >= threshold, np.size(value))


class OneScaleForAll(Mutant):
    """As much noise on the answers as on the threshold, not twice as much."""

    honest = AboveThreshold(1.0, 2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        noisy = value + rng.laplace(scale=self.scale, size=(size, np.size(value)))
        threshold = self.threshold + rng.laplace(scale=self.scale, size=(size, 1))
        return first_true(noisy >= threshold, np.size(value))


class NoneFoundIsLastIndex(Mutant):
    """Off by one: that no answer is above is released as the index of the last."""

    honest = AboveThreshold(1.0, 2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return np.minimum(self.honest.release(value, rng, size), np.size(value) - 1)


class HalfIfMonotone(Mutant):
    """Half the cost of monotone answers, as in the exponential mechanism; it is three quarters."""

    honest = AboveThreshold(1.0, 2.0, monotone=True)
    loss = PureLoss(0.5)
    caught_by = "hockey_stick"


class ReusesComparisonNoise(Mutant):
    """The answer is released with the noise that was compared."""

    honest = SparseVector(1.0, 2.0, 4.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        noisy = value + rng.laplace(scale=2 * self.scale, size=(size, np.size(value)))
        threshold = self.threshold + rng.laplace(scale=self.scale, size=(size, 1))
        index = first_true(noisy >= threshold, np.size(value))
        table = np.column_stack([noisy, np.full(size, np.nan)])
        return np.column_stack([index, table[np.arange(size), index]])


class AnswerNotCharged(Mutant):
    """Pays for the index and forgets the answer."""

    honest = SparseVector(1.0, 2.0, 4.0)
    loss = PureLoss(1.0)
    caught_by = "hockey_stick"


class RoundingNotPaid(Mutant):
    """Scores on a grid, and noise that is not wider for it."""

    honest = PermuteAndFlip(2.0, 0.3)
    drawn_scale, charged_sensitivity = 2.0, 0.3
    caught_by = "grid"


class ScoresNotRounded(Mutant):
    """Draws from the scores as they are."""

    honest = NoisyMax(2.0, noise="laplace")
    caught_by = "grid"

    def noise_centre(self, value):
        return np.asarray(value, dtype=float)


class StepForgotten(Mutant):
    """Charges the sensitivity alone, of which a step of the grid is more."""

    honest = Exponential(2.0, 2.0**-40)
    charged_sensitivity = 2.0**-40
    caught_by = "grid"


class LengthsForgotten(Mutant):
    """Draws a run by its score alone."""

    honest = RunLengthExponential(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        value = np.array(value, dtype=float)
        value[:, 1] = np.where(value[:, 1] > 0, 1.0, 0.0)
        return self.honest.release(value, rng, size)


class FirstOfTheRun(Mutant):
    """Takes the first candidate of a run."""

    honest = RunLengthExponential(2.0)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        drawn = self.honest.release(value, rng, size)
        starts = np.cumsum(value[:, 1], axis=-1) - value[:, 1]
        for i, row in enumerate(starts):
            drawn[..., i] = row[np.searchsorted(row, drawn[..., i], side="right") - 1]
        return drawn


class OneDrawForAllLists(Mutant):
    """Draws lists of one kind together."""

    honest = RunLengthExponential(2.0)
    caught_by = "batch"

    def release(self, value, rng=None, size=None):
        value = np.asarray(value, dtype=float)
        return np.broadcast_to(self.honest.release(value[0], rng), value.shape[:2])


class ListsPayAlone(Mutant):
    """Takes the move of every list for the sensitivity, where all move together."""

    honest = RunLengthExponential(2.0)
    caught_by = "neighbours"

    @property
    def values(self):
        return AllListsMove(self.honest.sensitivity)


class AllListsMove(RunValues):
    """Neighbours whose lists all move by the sensitivity."""

    def example(self, rng):
        return np.array([[[0.0, -1.0], [1.0, 1.0]]] * 2) * rng.choice([1.0, 1.0])

    def neighbour(self, value, rng):
        moved = np.array(value)
        moved[:, 0] += self.sensitivity * np.array([1.0, -1.0]) * rng.choice([-1.0, 1.0])
        return moved


class OnePersonMore(Mutant):
    """Counts a person more for every key."""

    honest = PartitionSelection(0.8, 0.01)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        one = np.asarray(value).item()
        return self.honest.release(KeyCounts(one.keys, one.counts + 1), rng, size)


class KeysPaidOnce(Mutant):
    """Lets a person hold two keys for the price of one."""

    honest = PartitionSelection(0.8, 0.01, 2)
    loss = ApproxLoss(0.8, 0.01)
    caught_by = "hockey_stick"


class OneCoinForAllKeys(Mutant):
    """Keeps keys of one count all or none."""

    honest = PartitionSelection(0.8, 0.01)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        one = np.asarray(value).item()
        kept = rng.random((size, 1)) < self.honest.keep_probability(one.counts)
        return np.where(kept, one.keys, -1)
