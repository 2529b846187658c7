"""Wrong randomisers of labels, and wrong estimates from their reports."""

import numpy as np

from accountant import PairLoss
from mechanisms.hadamard_response import HadamardResponse
from mechanisms.local_hashing import LocalHashing
from mechanisms.randomized_response import RandomizedResponse
from mechanisms.subset_selection import SubsetSelection
from mechanisms.unary_encoding import UnaryEncoding
from tests.mutants.specimens import Mutant

KEEP = 0.2319693


class SharedCoin(Mutant):
    """All users lie, or none."""

    honest = RandomizedResponse(10, KEEP)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        lies = (value + rng.integers(1, self.k, size)) % self.k
        return np.full(size, value) if rng.random() < self.keep else lies


class SameNoiseInEveryBlock(Mutant):
    """Works on blocks of users, each with the same random numbers."""

    honest = RandomizedResponse(10, KEEP)
    caught_by = "batch"

    def release(self, value, rng=None, size=None):
        state = rng.bit_generator.state
        reports = []
        for block in np.split(value, 4):
            rng.bit_generator.state = state
            reports.append(self.honest.release(block, rng))
        return np.concatenate(reports)


class LieIsNextLabel(Mutant):
    """Every lie is the next label."""

    honest = RandomizedResponse(10, KEEP)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        return np.where(rng.random(size) < self.keep, value, (value + 1) % self.k)


class LiesAmongAllLabels(Mutant):
    """The density shares a lie among k labels, not k - 1."""

    honest = RandomizedResponse(10, KEEP)
    caught_by = "normalised"

    def log_probabilities_by_support(self, reports):
        return np.log(self.keep), np.log((1 - self.keep) / self.k)


class DividedByTruth(Mutant):
    """Estimates by ``(share - q) / p``."""

    honest = RandomizedResponse(10, KEEP)
    caught_by = "decoders"

    def estimate(self, counts, users):
        return (counts / users - self.other_label_probability) / self.own_label_probability


class PAndQSwapped(Mutant):
    """The bit of the own label is 1 with probability q, all others with p."""

    honest = UnaryEncoding(5, 0.5, 0.2689414)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        chances = np.where(np.arange(self.k) == value, self.q, self.p)
        return (rng.random((size, self.k)) < chances).astype(np.uint8)


class LastBitNotRandomised(Mutant):
    """Randomises all bits but the last (opendp/opendp#2707)."""

    honest = UnaryEncoding(5, 0.5, 0.2689414)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        reports = self.honest.release(value, rng, size)
        reports[:, -1] = value == self.k - 1
        return reports


class LossOfOneBit(Mutant):
    """The loss of one bit, where two differ between users."""

    honest = UnaryEncoding(5, 0.7, 0.3)
    loss = PairLoss((0.7, 0.3), (0.3, 0.7))
    caught_by = "hockey_stick"


class FlipProbability(Mutant):
    """Decodes as if both bits were flipped alike, ``q = 1 - p``."""

    honest = UnaryEncoding(5, 0.6, 0.2689414)
    other_label_probability = 0.4
    caught_by = "decoders"


class VarianceOfAbsentLabels(Mutant):
    """The variance of a label that nobody has, for every label."""

    honest = UnaryEncoding(5, 0.6, 0.2689414)
    caught_by = "decoders"

    @property
    def coefficient_variances(self):
        return (self.honest.coefficient_variances[1],) * 2


class WithReplacement(Mutant):
    """The rest of the set is drawn with replacement."""

    honest = SubsetSelection(6, 3, 0.6)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        rest = (value + rng.integers(1, self.k, (size, self.size))) % self.k
        rest[rng.random(size) < self.keep, 0] = value
        return np.sort(rest, axis=-1)


class UniformShare(Mutant):
    """Decodes as if any other label were reported by ``size / k`` of the users."""

    honest = SubsetSelection(6, 2, 0.5761169)
    other_label_probability = 2 / 6
    caught_by = "decoders"


class LossOfMembershipOnly(Mutant):
    """The loss of being in the set or out of it, whatever the sizes."""

    honest = SubsetSelection(6, 2, 0.5761169)
    loss = PairLoss((0.5761169, 1 - 0.5761169), (1 - 0.5761169, 0.5761169))
    caught_by = "hockey_stick"


class UsesConstantRow(Mutant):
    """Uses the rows from 0 on, of which the first is +1 at every column."""

    honest = HadamardResponse(5, 0.7310586)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        anywhere = rng.integers(0, self.order, size)
        return self.honest.release(value - 1, rng, size) if value else anywhere


class ComplementForHalf(Mutant):
    """Decodes as if other rows were +1 with probability ``1 - keep``, not a half."""

    honest = HadamardResponse(5, 0.7310586)
    other_label_probability = 1 - 0.7310586
    caught_by = "decoders"


class HashSeededByLabel(Mutant):
    """Seeds the hash with the label, and tells the hash."""

    honest = LocalHashing(5, 3, 0.5761169)
    caught_by = "sampler"

    def release(self, value, rng=None, size=None):
        reports = self.honest.release(value, rng, size)
        hashed = (reports[:, 2] - self.bucket(reports, value)) % self.buckets
        reports[:, 0] = 1 + value % (self.prime - 1)
        reports[:, 2] = (self.bucket(reports, value) + hashed) % self.buckets
        return reports

    def bucket(self, reports, label):
        return (reports[:, 0] * label + reports[:, 1]) % self.prime % self.buckets


class IdealHash(Mutant):
    """Two labels collide with probability ``1 / buckets``, as under an ideal hash."""

    honest = LocalHashing(5, 3, 0.5761169)
    collision = 1 / 3
    caught_by = "decoders"
