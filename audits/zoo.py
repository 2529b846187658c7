"""Deliberately broken mechanisms and algorithms; an audit that misses one is broken itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.loss import Loss
from accountant.parallel import Parallel
from accountant.plan import Plan, Repeat
from accountant.responses import PureLoss
from mechanisms.laplace import Laplace
from mechanisms.randomized_response import RandomizedResponse

Generator = np.random.Generator
ONE = Laplace(scale=1.0, sensitivity=1.0)
RECORDS = np.linspace(0.0, 1.0, 20)
CHANGED = np.append(RECORDS[:-1], 0.0)  # the last record, 1, became 0
ANSWERS = np.arange(20) % 2
FLIPPED = np.append(ANSWERS[:-1], 1 - ANSWERS[-1])


@final
@dataclass(frozen=True, slots=True)
class Specimen:
    """One broken thing: what is wrong, the claim it makes, its true epsilon, what must catch it.

    ``broken`` is a release function with ``pair`` two values, or an algorithm with ``pair`` two
    data sets; ``true_epsilon`` is None where it has no finite one.
    """

    name: str
    flaw: str
    caught_by: str
    claim: Loss
    broken: Any
    pair: tuple[Any, Any]
    true_epsilon: float | None


def half_the_noise(value: float, rng: Generator, size: int) -> NDArray[Any]:
    """Laplace noise of half the stated scale."""
    return value + rng.laplace(scale=0.5, size=size)


def value_of_noisy_max(scores: NDArray[Any], rng: Generator, size: int) -> NDArray[Any]:
    """Releases the winning noisy value where only its index was paid for."""
    noisy: NDArray[Any] = scores + rng.laplace(scale=2.0, size=(size, len(scores)))
    winner: NDArray[Any] = noisy.max(axis=1)
    return winner


def truth_twice(label: int, rng: Generator, size: int) -> NDArray[Any]:
    """The random answer of ten-ary response may be the truth again."""
    keep = np.e / (np.e + 9)
    return np.where(rng.random(size) < keep, label, rng.integers(0, 10, size))


def no_noise_on_zero(value: float, rng: Generator, size: int) -> NDArray[Any]:
    """An answer of zero is thought to tell nothing and gets no noise."""
    return np.full(size, 0.0) if value == 0 else value + rng.laplace(size=size)


def own_seed(value: float, rng: Generator, size: int) -> NDArray[Any]:
    """Seeds its own generator, so the noise is the same every time."""
    del rng
    return np.full(size, value + np.random.default_rng(1234).laplace())


class _Sum:
    """An honest sum of records in [0, 1] under Laplace noise; the specimens below break it."""

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """One Laplace release."""
        del shape
        return Repeat(ONE, 1)

    def run(self, ledger: Any) -> float:
        """The noisy sum."""
        return float(ledger.release(ONE, np.sum))


class Peek(_Sum):
    """Adds a billionth of the data to the answer, past the gate."""

    def run(self, ledger: Any) -> float:
        """The noisy sum and a little truth."""
        return super().run(ledger) + 1e-9 * float(ledger._data.sum())  # noqa: SLF001  # the flaw


class AsLongAsItTakes(_Sum):
    """Releases once more while the data are above a threshold."""

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """Up to eight releases."""
        del shape
        return Repeat(Laplace(scale=8.0, sensitivity=1.0), 8)

    def run(self, ledger: Any) -> float:
        """As many noisy sums as there are records above 0.7."""
        mechanism, seen = ledger.plan.part, []

        def query(data: NDArray[Any]) -> float:
            seen.append(int(np.count_nonzero(data > 0.7)))
            return float(data.sum())

        total = float(ledger.release(mechanism, query))
        for _ in range(seen[0] - 1):
            total += float(ledger.release(mechanism, query))
        return total / seen[0]


class HalfTheSensitivity(_Sum):
    """Sums records that reach from 0 to 2 and declares a sensitivity of 1."""

    def run(self, ledger: Any) -> float:
        """The noisy sum of doubled records."""
        return float(ledger.release(ONE, lambda data: 2 * data.sum()))


class NoiseThief(_Sum):
    """Copies the noise generator before the release and takes the noise off again."""

    def run(self, ledger: Any) -> float:
        """The sum, without noise."""
        thief = copy.deepcopy(getattr(ledger, "_noise", None))
        noisy = super().run(ledger)
        return noisy - (float(thief.laplace()) if thief else 0.0)


class Gossip:
    """In the local model, lets every user's value depend on the others' answers."""

    def plan(self, shape: tuple[int, ...]) -> Plan:
        """One response of every user."""
        del shape
        return Parallel([RandomizedResponse(k=2, keep=0.7310585)])

    def run(self, ledger: Any) -> float:
        """Share of ones among answers that all users flip when most are ones."""
        mechanism = ledger.plan.parts[0]

        def query(answers: NDArray[Any]) -> NDArray[Any]:
            return answers if answers.mean() < 0.5 else 1 - answers

        return float(np.mean(ledger.release_each(mechanism, query)))


def _functions() -> list[Specimen]:
    claim = PureLoss(1.0)
    rows: list[tuple[Callable[..., Any], tuple[Any, Any], float | None]] = [
        (half_the_noise, (0.0, 1.0), 2.0),
        (value_of_noisy_max, (np.zeros(5), np.ones(5)), 2.5),
        (truth_twice, (0, 1), float(np.log1p(10 * np.e / 9))),
        (no_noise_on_zero, (0.0, 1.0), None),
        (own_seed, (0.0, 1.0), None),
    ]
    return [
        Specimen(f.__name__, _first_line(f), "guess test", claim, f, pair, true)
        for f, pair, true in rows
    ]


def _algorithms() -> list[Specimen]:
    records, answers = (RECORDS, CHANGED), (ANSWERS, FLIPPED)
    rows: list[tuple[type[Any], str, tuple[Any, Any], float | None]] = [
        (Peek, "replay", records, None),
        (AsLongAsItTakes, "replay", records, None),
        (HalfTheSensitivity, "privacy losses", records, 2.0),
        (NoiseThief, "replay", records, None),
        (Gossip, "replay", answers, None),
    ]
    return [
        Specimen(_snake(cls.__name__), _first_line(cls), by, PureLoss(1.0), cls(), pair, true)
        for cls, by, pair, true in rows
    ]


def _first_line(thing: Any) -> str:
    return str(thing.__doc__).splitlines()[0]


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


ZOO: tuple[Specimen, ...] = (*_functions(), *_algorithms())
