"""How a release is called: which arguments it takes, and how the calls of one chunk are made.

A release takes its value first.  A generator may follow as the second argument or as one of the
name ``rng``, a number of runs as ``size`` or as a third argument without a default.  A function of
``**options`` is tried with ``rng``, and called without it if that raises a `TypeError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ParameterError

FORMS = (
    "a mechanism, or a function of (value), (value, rng) or (value, rng, size) "
    "(functools.partial gives its other arguments)"
)
# a second argument of one of these names takes a generator, whatever its default is
GENERATOR_NAMES = {"rng", "generator", "random_state"}
BY_PLACE, BY_NAME, BY_TRIAL = "by place", "by name", "by trial"
BY_NAME_ON_TRIAL = "by name on trial"  # the function takes any named arguments


class IsolatedRelease(ABC):
    """A release that runs elsewhere: it can change no value here, so it needs no copies."""

    @property
    @abstractmethod
    def takes_size(self) -> bool:
        """Whether one call of the function there makes many runs."""

    @abstractmethod
    def __call__(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Outputs of ``size`` runs along the first axis."""


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
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    further = [p for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    names = {p.name for p in further}
    generator = BY_NAME if "rng" in names else ""
    if len(plain) > 1:
        if plain[1].name == "rng" or ("rng" not in names and _is_generator(plain[1])):
            generator = BY_PLACE
    elif not generator and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        generator = BY_PLACE
    if not generator and any(p.kind is p.VAR_KEYWORD for p in parameters):
        generator = BY_NAME_ON_TRIAL
    third = plain[2] if len(plain) > 2 and generator == BY_PLACE else None
    by_place = third is not None and third.default is third.empty
    form = CallForm(generator, BY_NAME if "size" in names else BY_PLACE * by_place, awaited)
    positional = [None, None][: 1 + (generator == BY_PLACE)] + [None] * (form.size == BY_PLACE)
    named = dict.fromkeys(["rng"] * (generator == BY_NAME) + ["size"] * (form.size == BY_NAME))
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        shown = f"{release_name(release)}{signature_names(signature)}, {error}"
        raise ParameterError("release", shown, FORMS) from None
    return form


@contextlib.contextmanager
def awaiting(call: Callable[..., Any], *, awaited: bool) -> Iterator[Callable[..., Any]]:
    """The function itself, or if it is awaited one that runs its coroutines to the end."""
    if not awaited:
        yield call
        return
    # in an asynchronous test this thread already runs a loop, and it can have only one
    if _in_event_loop():
        with ThreadPoolExecutor(1) as thread:
            yield lambda *given: thread.submit(asyncio.run, call(*given)).result()
        return
    with asyncio.Runner() as runner:
        yield lambda *given: runner.run(call(*given))


def release_name(release: Any) -> str:
    """The name of a function, or of the type of another object; never what is bound to it."""
    inner = getattr(release, "func", release)
    return str(getattr(inner, "__name__", type(inner).__name__))


def signature_names(signature: inspect.Signature) -> str:
    """The names of the parameters; defaults may hold anything."""
    return f"({', '.join(signature.parameters)})"


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
