"""Drawing the runs of an audit: any function, a fair coin a run, memory bounded by a chunk."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError

CHUNK = 1 << 15  # runs at a time: stays in the processor's cache, and bounds memory
Draw = Callable[[Any, np.random.Generator, int], NDArray[Any]]


def sides(
    draw: Draw, pair: tuple[Any, Any], runs: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield outputs of the first and of the second value, a coin for each run, in chunks."""
    for done in range(0, runs, CHUNK):
        size = min(CHUNK, runs - done)
        # n ~ Bin(size, 1/2) runs of one side equal a coin a run, since only counts are kept
        ones = int(rng.binomial(size, 0.5))
        yield draw(pair[0], rng, ones), draw(pair[1], rng, size - ones)


def vectorised(release: Callable[..., Any]) -> Draw:
    """``release`` as a function of (value, rng, size), by a loop where it takes no size."""
    if not callable(release):
        raise ParameterError("release", release, "a mechanism or a function")
    by_name, by_position = _takes_size(release)

    def draw(value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        if size == 0:
            return np.empty(0)
        if by_name:
            output = np.asarray(release(value, rng, size=size))
        elif by_position:
            output = np.asarray(release(value, rng, size))
        else:
            output = np.asarray([release(value, rng) for _ in range(size)])
        if output.shape[:1] != (size,):
            raise ParameterError(
                "release", f"outputs of shape {output.shape}", f"one output for each of {size} runs"
            )
        return output

    return draw


def _takes_size(release: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether it takes ``size`` by name, or a third argument that must be given."""
    try:
        parameters = list(inspect.signature(release).parameters.values())
    except (TypeError, ValueError):  # some functions written in C do not tell
        return False, False
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(plain) < 2 and not open_ended:
        raise ParameterError("release", release, "a function of (value, rng) or (value, rng, size)")
    named = any(p.name == "size" and p.kind is not p.POSITIONAL_ONLY for p in parameters)
    return named, len(plain) > 2 and plain[2].default is inspect.Parameter.empty
