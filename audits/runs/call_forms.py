"""How a release is called, by its signature: with or without a generator and a number of runs.

A release takes its value first.  A generator may follow as the second argument or as one of the
name ``rng``, a number of runs as ``size`` or as a third argument without a default.  A function of
``**options`` is tried with ``rng``, and called without it if that raises a `TypeError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from accountant.errors import ParameterError

FORMS = (
    "a mechanism, or a function of (value), (value, rng) or (value, rng, size) "
    "(functools.partial gives its other arguments)"
)
# a second argument of one of these names takes a generator, whatever its default is
GENERATOR_NAMES = {"rng", "generator", "random_state"}
# how a release takes an argument; without a signature it is tried with a generator first
BY_PLACE, BY_NAME, BY_TRIAL = "by place", "by name", "by trial"
BY_NAME_ON_TRIAL = "by name on trial"  # the function takes any named arguments
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@final
@dataclass(frozen=True, slots=True)
class CallForm:
    """How a release takes its generator and its number of runs; "" if it takes none.

    ``awaited`` releases are coroutine functions.
    """

    generator: str
    size: str
    awaited: bool = False

    def one_run(self, release: Callable[..., Any]) -> Callable[..., Any]:
        """The release as a function of (value, rng) that makes one run."""
        if self.generator == BY_PLACE:
            return release
        if self.generator == BY_NAME:
            return lambda value, rng: release(value, rng=rng)
        if self.generator == BY_TRIAL:
            return lambda value, rng: _call_by_trial(release, value, rng)
        if self.generator == BY_NAME_ON_TRIAL:
            return lambda value, rng: _call_by_trial(release, value, rng, by_name=True)
        return lambda value, rng: release(value)

    def many_runs(
        self, release: Callable[..., Any], value: Any, rng: np.random.Generator, size: int
    ) -> Any:
        """What the release returns for ``size`` runs."""
        if self.generator == BY_NAME_ON_TRIAL:
            many = functools.partial(release, size=size)
            return _call_by_trial(many, value, rng, by_name=True)
        positional = (value, rng) if self.generator == BY_PLACE else (value,)
        named = {"rng": rng} if self.generator == BY_NAME else {}
        if self.size == BY_NAME:
            return release(*positional, **named, size=size)
        return release(*positional, size, **named)


def call_form(release: Callable[..., Any]) -> CallForm:
    """How the release is called, by its signature; raises `ParameterError` if it cannot be."""
    if not callable(release):
        raise ParameterError("release", type(release).__name__, FORMS)
    method = getattr(type(release), "__call__", None)  # of an object  # noqa: B004
    awaited = any(map(inspect.iscoroutinefunction, (release, method)))
    try:
        signature = inspect.signature(release)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return CallForm(BY_TRIAL, "", awaited)
    parameters = list(signature.parameters.values())
    generator = _generator_form(parameters)
    parameter_names = [p.name for p in parameters]
    names = {p.name for p in parameters[1:] if p.kind in BY_KEYWORD}
    positional = [p for p in parameters if p.kind in POSITIONAL]
    size = BY_NAME if "size" in names else ""
    if not size and generator == BY_PLACE and len(positional) > 2:
        # after a generator, a third argument without a default takes the number of runs
        size = BY_PLACE if positional[2].default is inspect.Parameter.empty else ""
    positional_count = 1 + (generator == BY_PLACE) + (size == BY_PLACE)
    keywords = ["rng"] * (generator == BY_NAME) + ["size"] * (size == BY_NAME)
    try:
        signature.bind(*[None] * positional_count, **dict.fromkeys(keywords))
    except TypeError as error:
        # The names alone are shown, as defaults may hold anything.
        shown = f"{release_name(release)}({', '.join(parameter_names)}), {error}"
        raise ParameterError("release", shown, FORMS) from None
    return CallForm(generator, size, awaited)


def _generator_form(parameters: list[inspect.Parameter]) -> str:
    """How a release takes a generator: as its second argument, by the name ``rng``, or not."""
    positional = [p for p in parameters if p.kind in POSITIONAL]
    has_rng = any(p.name == "rng" and p.kind in BY_KEYWORD for p in parameters[1:])
    kinds = {p.kind for p in parameters}
    if len(positional) > 1:
        second = positional[1]
        if second.name == "rng" or (not has_rng and _is_generator(second)):
            return BY_PLACE
    elif not has_rng and inspect.Parameter.VAR_POSITIONAL in kinds:
        return BY_PLACE
    if has_rng:
        return BY_NAME
    return BY_NAME_ON_TRIAL if inspect.Parameter.VAR_KEYWORD in kinds else ""


@contextlib.contextmanager
def awaiting(call: Callable[..., Any], *, awaited: bool) -> Iterator[Callable[..., Any]]:
    """The function itself, or if it is awaited one that runs its coroutines to the end."""
    if not awaited:
        yield call
        return
    # in an asynchronous test this thread already runs a loop, and it can have only one
    if _in_event_loop():
        with ThreadPoolExecutor(1) as thread:
            yield lambda *arguments: thread.submit(asyncio.run, call(*arguments)).result()
        return
    with asyncio.Runner() as runner:
        yield lambda *arguments: runner.run(call(*arguments))


def release_name(release: Any) -> str:
    """The name of a function, or of the type of another object; never what is bound to it."""
    inner = getattr(release, "func", release)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_generator(parameter: inspect.Parameter) -> bool:
    """Whether a second parameter takes a generator: not ``size``, nor one with another default."""
    default = parameter.default
    may_be_generator = (
        default is parameter.empty or default is None or parameter.name in GENERATOR_NAMES
    )
    return parameter.name != "size" and (
        may_be_generator or isinstance(default, np.random.Generator)
    )


def _call_by_trial(
    release: Callable[..., Any], value: Any, rng: np.random.Generator, *, by_name: bool = False
) -> Any:
    try:
        return release(value, rng=rng) if by_name else release(value, rng)
    except TypeError:
        return release(value)
