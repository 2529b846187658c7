"""A training run: what its owner says of batches, steps and noise, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accountant.domains import BOOLEAN, POSITIVE_DELTA, IntegerRange, Interval
from accountant.errors import ParameterError
from accountant.training.loaders import SAMPLING, check_loader

EXAMPLES = IntegerRange(1, 10**12)
STEPS = IntegerRange(1, 10**9)
EPOCHS = Interval(0.0, 1e9, "(]")
RATE = Interval(0.0, 1.0, "(]")


@final
@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What a run of DP-SGD did, apart from its noise; ``epochs`` or ``steps`` is None."""

    examples: int  # records of the training set
    batch: int  # records of a batch, or the expected number where each is drawn by a coin
    epochs: float | None = None  # how often the data were gone through
    steps: int | None = None
    loader: str = "poisson"  # how batches were made: one of `LOADERS`
    drop_last: bool = False  # whether a pass leaves out a last batch that is short
    max_batch: int | None = None  # what "truncated_poisson" cuts a batch to; None: ``batch``
    rate: float | None = None  # of sampling, where it is not batch / examples
    microbatching: bool = False  # whether means of several gradients are clipped
    examples_per_user: int | None = None  # the most records of one user, if that is known

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("examples", EXAMPLES.check("examples", self.examples))
        put("batch", IntegerRange(1, self.examples).check("batch", self.batch))
        if self.epochs is not None and self.steps is not None:
            raise ParameterError("epochs", self.epochs, "left out where steps is given")
        if self.epochs is not None:
            put("epochs", EPOCHS.check("epochs", self.epochs))
        if self.steps is not None:
            put("steps", STEPS.check("steps", self.steps))
        put("loader", check_loader("loader", self.loader))
        for flag in ("drop_last", "microbatching"):
            put(flag, BOOLEAN.check(flag, getattr(self, flag)))
        if self.max_batch is not None:
            put("max_batch", EXAMPLES.check("max_batch", self.max_batch))
        if self.rate is not None:
            put("rate", RATE.check("rate", self.rate))
            if self.loader not in ("poisson", "truncated_poisson"):
                why = "left out: only a loader that flips a coin for each record has a rate"
                raise ParameterError("rate", self.rate, why)
        if self.examples_per_user is not None:
            allowed = IntegerRange(1, self.examples)
            put("examples_per_user", allowed.check("examples_per_user", self.examples_per_user))
        if self.draws > STEPS.high:
            raise ParameterError("epochs", self.epochs, f"at most {STEPS.high:,} steps in all")

    @property
    def sampling_rate(self) -> float:
        """How likely a record is in a batch: the rate given, else batch / examples."""
        return self.batch / self.examples if self.rate is None else self.rate

    @property
    def largest_batch(self) -> int:
        """What a truncated batch holds at most: the batch, unless said otherwise."""
        return self.batch if self.max_batch is None else self.max_batch

    @property
    def batches(self) -> int:
        """Batches of one pass; the last may be short, or is dropped."""
        return self.examples // self.batch + (self.dropped == 0 and self.last_batch > 0)

    @property
    def last_batch(self) -> int:
        """Records of the short last batch; 0 where all batches are full."""
        return self.examples % self.batch

    @property
    def dropped(self) -> int:
        """Records that one pass leaves out."""
        return self.last_batch if self.drop_last else 0

    @property
    def draws(self) -> int:
        """Steps of a loader that draws every batch anew: an epoch is examples / batch of them."""
        if self.steps is not None:
            return self.steps
        return math.ceil(_decimal(self.epochs) * self.examples / self.batch)

    @property
    def passes(self) -> Fraction:
        """Passes over the data of a loader that goes through them."""
        if self.steps is None:
            return _decimal(self.epochs)
        return Fraction(self.steps, self.batches)

    @property
    def taken(self) -> int:
        """Steps that the run took, by its own loader."""
        if self.steps is not None:
            return self.steps
        return self.draws if self.loader in SAMPLING else math.ceil(self.passes * self.batches)


def default_delta(examples: int) -> float:
    """Return examples^-1.1 rounded down to one digit: the expert's rule, well below 1 / n."""
    exact = min(examples**-1.1, 0.1)
    power = math.floor(math.log10(exact))
    # the digit is at least 1: a rounded logarithm must not turn 1e-6 into 0e-6
    return POSITIVE_DELTA.check("delta", float(f"{max(1, int(exact / 10.0**power))}e{power}"))


def _decimal(epochs: float | None) -> Fraction:
    """Return the number of epochs, 1 if None, as it is printed: 0.1 is one tenth exactly."""
    return Fraction(repr(float(1 if epochs is None else epochs)))
