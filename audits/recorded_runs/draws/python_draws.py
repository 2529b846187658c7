"""Generators of Python's `random` and `secrets` that record their draws.

While an audit records a run, these classes stand in for those of Python.  Each draw becomes an
event on the run's tape.  Uniform, Gaussian and exponential numbers are followed through the code as
noise; draws of bits, samples and orders are handed out as they are.  In the second run, on the
neighbouring data, the tape hands out the outputs of the first run.  Outside of a run the classes
draw as Python's own do.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from audits.recorded_runs.call_sites import is_importing
from audits.recorded_runs.draws.draw_tables import DrawTable
from audits.recorded_runs.draws.numpy_draws import recorded_noise
from audits.recorded_runs.draws.parametric_draws import choice, permuted_places, places_drawn
from audits.recorded_runs.noisy_numbers import use
from audits.recorded_runs.tape import Tape, current_tape, tape_of_draw, unrecorded

PLAIN_RANDOM = random.Random  # Python's own class, kept here because the module's is replaced
# The draws that are noise: their arguments with defaults, their law, and the names of the arguments
# of location and scale.
TABLES = {
    "random": DrawTable({}, "uniform"),
    "uniform": DrawTable({"a": None, "b": None}, "uniform"),
    "gauss": DrawTable({"mu": 0.0, "sigma": 1.0}, "gaussian", "mu", "sigma"),
    "normalvariate": DrawTable({"mu": 0.0, "sigma": 1.0}, "gaussian", "mu", "sigma"),
    "expovariate": DrawTable({"lambd": 1.0}, "exponential", "", "scale"),
}


class RecordingRandom(PLAIN_RANDOM):
    """Python's generator, which records within a run.

    The methods that are not overridden here call those that are, and so are recorded by them.
    """

    def _noise(self, name: str, draw: Any, parameters: dict[str, Any]) -> Any:
        """Return a number drawn by ``draw``: within a run, a followed one of the law in `TABLES`.

        Code that is being imported is not part of the run.
        """
        tape = tape_of_draw()
        if tape is None or is_importing():
            return draw()
        return recorded_noise(tape, name, TABLES[name], lambda: unrecorded(draw), parameters)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seed the generator, with what must be equal in both runs."""
        tape = current_tape()
        if tape is not None and a is not None and not is_importing():
            tape.call("generator", lambda: None, equal={"seed": use(a)})
        super().seed(use(a), version)

    def random(self) -> Any:
        """A uniform number."""
        return self._noise("random", lambda: PLAIN_RANDOM.random(self), {})

    def uniform(self, a: Any, b: Any) -> Any:
        """A uniform number between a and b."""
        a, b = use(a), use(b)
        draw = lambda: PLAIN_RANDOM.uniform(self, a, b)  # noqa: E731
        return self._noise("uniform", draw, {"low": a, "high": b})

    def gauss(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        """A Gaussian number of this mean and standard deviation."""
        draw = lambda: PLAIN_RANDOM.gauss(self, use(mu), use(sigma))  # noqa: E731
        return self._noise("gauss", draw, {"mu": mu, "sigma": sigma})

    def normalvariate(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        """A Gaussian number of this mean and standard deviation."""
        draw = lambda: PLAIN_RANDOM.normalvariate(self, use(mu), use(sigma))  # noqa: E731
        return self._noise("normalvariate", draw, {"mu": mu, "sigma": sigma})

    def expovariate(self, lambd: Any = 1.0) -> Any:
        """An exponential number of rate ``lambd``, whose scale is ``1 / lambd``."""
        draw = lambda: PLAIN_RANDOM.expovariate(self, use(lambd))  # noqa: E731
        return self._noise("expovariate", draw, {"scale": 1 / use(lambd)})

    def getrandbits(self, k: int) -> int:
        """A whole number of ``k`` random bits."""
        tape = tape_of_draw()
        if tape is None or is_importing():
            return PLAIN_RANDOM.getrandbits(self, k)
        event = tape.draw(
            "getrandbits",
            lambda: PLAIN_RANDOM.getrandbits(self, k),
            equal={"the number of bits": k},
            coins=True,
        )
        return int(event.output)

    def choices(
        self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> Any:
        """Choose k elements with replacement, by weights that may be private."""
        tape = tape_of_draw()
        if tape is None:
            return PLAIN_RANDOM.choices(self, population, weights, cum_weights=cum_weights, k=k)
        if cum_weights is not None:
            weights = np.diff(np.asarray(use(cum_weights), dtype=float), prepend=0.0)
        law = None if weights is None else np.asarray(use(weights), dtype=float)

        def sample(count: int, size: int, *laws: Any) -> Any:
            weights = list(laws[1]) if len(laws) > 1 else None
            places = unrecorded(PLAIN_RANDOM.choices, self, range(count), weights, k=size)
            return np.array(places)

        p = None if law is None else law / law.sum()
        places = choice(tape, sample, len(population), k, p=p)
        return [population[index] for index in places]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> Any:
        """Choose k elements without replacement."""
        tape = tape_of_draw()
        if tape is None or counts is not None:
            return PLAIN_RANDOM.sample(self, population, k, counts=counts)

        def draw() -> Any:
            places = unrecorded(PLAIN_RANDOM.sample, self, range(len(population)), k)
            return np.array(places, dtype=int)

        places = places_drawn(tape, "sample", draw, len(population), k, replace=False)
        return [population[index] for index in places]

    def shuffle(self, x: Any) -> None:
        """Put the elements of a list into a random order, in place."""
        tape = tape_of_draw()
        if tape is None:
            PLAIN_RANDOM.shuffle(self, x)
            return

        def order(count: int) -> Any:
            places = list(range(count))
            unrecorded(PLAIN_RANDOM.shuffle, self, places)
            return np.array(places, dtype=int)

        places = permuted_places(tape, order, len(x), "shuffle")
        x[:] = [x[k] for k in places]


class RecordingSystemRandom(RecordingRandom):
    """Stands in for `random.SystemRandom`: within a run it is seeded, so that runs repeat."""

    def __init__(self, seed: Any = None) -> None:
        tape = tape_of_draw()
        unrecorded(super().__init__, None if tape is None else _seed_from(tape))
        del seed

    def seed(self, *arguments: Any, **options: Any) -> None:
        """Seed the generator in its constructor; later calls do nothing."""
        if not hasattr(self, "_seeded"):
            self._seeded = True
            super().seed(*arguments, **options)


class UnseededRandom(RecordingRandom):
    """Stands in for `random.Random`: within a run, no seed means one from the run's own entropy."""

    def __init__(self, x: Any = None) -> None:
        tape = tape_of_draw()
        if tape is None or (x is not None and not tape.passes_over_seeds):
            super().__init__(use(x))
        else:
            unrecorded(super().__init__, _seed_from(tape))


def _seed_from(tape: Tape) -> int:
    """Return a new seed from the entropy of the run."""
    return int(tape.new_seed().generate_state(1)[0])
