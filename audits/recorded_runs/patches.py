"""Replacement of generators and mechanisms by recording ones while a function is recorded.

So that every draw of the recorded function goes to the tape, the functions and classes that draw
(of numpy, random, secrets, torch, scipy and libraries of mechanisms) are replaced in their modules,
and also wherever another module, or the function itself, holds a reference to one or a generator.
All names are put back after the run.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import math
import random
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.recorded_runs.call_sites import call_site, is_library
from audits.recorded_runs.draws.declared_calls import Primitive, recording_call
from audits.recorded_runs.draws.draw_tables import COINS, NOISE
from audits.recorded_runs.draws.library_calls import library_patches
from audits.recorded_runs.draws.numpy_draws import (
    PLAIN_GENERATOR,
    PLAIN_STATE,
    RecordingGenerator,
    RecordingState,
    new_generator,
    recording_generator,
    recording_state,
)
from audits.recorded_runs.draws.parametric_draws import PARAMETRIC
from audits.recorded_runs.draws.python_draws import (
    RecordingRandom,
    RecordingSystemRandom,
    UnseededRandom,
)
from audits.recorded_runs.draws.torch_draws import torch_patches
from audits.recorded_runs.followed_values import FollowedArray, follow_nest
from audits.recorded_runs.noisy_numbers import is_noise_alone, plain, use
from audits.recorded_runs.tape import current_tape, new_seed_bits, noting_a_process, within_a_run

# These modules, and those inside of them, keep their references to what is replaced.
LEFT_ALONE = ("numpy.", "torch.", "random.", "secrets.", "audits.recorded_runs.")
OTHER_DRAWS = ("permutation", "shuffle", "multivariate_normal")  # further functions of numpy
PYTHON_DRAWS = (
    "random", "uniform", "gauss", "normalvariate", "expovariate", "getrandbits", "shuffle",
    "choice", "choices", "sample", "randint", "randrange", "triangular", "betavariate",
    "gammavariate", "lognormvariate", "vonmisesvariate", "paretovariate", "weibullvariate",
    "randbytes", "seed",
)  # fmt: skip
# functions of `math` that are numpy's function of the same name if their argument is noise alone
FUNCTIONS_OF_MATH = (
    "log", "log1p", "exp", "expm1", "sqrt", "cos", "sin", "tan", "fabs", "copysign",
)  # fmt: skip
# Functions of `numpy.random` that are a method of another name.
ALIASES = {"ranf": "random_sample", "sample": "random_sample"}
PLAIN_KINDS = (PLAIN_GENERATOR, PLAIN_STATE)
_absent = object()  # stands for the old value of a name that was not there
_one_at_a_time = threading.Lock()


@contextmanager
def patched(
    declared: Mapping[Any, Primitive], function: Any, seed: int
) -> Iterator[Callable[[], None]]:
    """Replace what draws, and give a function that puts all generators back to their start.

    ``declared`` are functions that the caller declares as mechanisms, ``function`` is the one that
    is recorded, and ``seed`` seeds the global generators.  A second run at the same time is
    refused.
    """
    if not _one_at_a_time.acquire(blocking=False):
        raise RuntimeError(
            "a recorded run is under way in this process: record calls one after the other, "
            "and never within a recorded function"
        )
    # owner (an object, or a dict of names), name, and the value before
    undo: list[tuple[Any, Any, Any]] = []
    loaded = frozenset(sys.modules)
    try:
        legacy: Any = recording_state(PLAIN_STATE(seed % 2**32))
        sources = [legacy, RecordingRandom(seed), RecordingRandom(seed + 1)]
        for owner, name, new in _replacements(declared, sources):
            undo.append((owner, name, vars(owner).get(name, _absent)))
            setattr(owner, name, new)
        sources += _replace_references(undo, function)
        restores = list(map(_restore, sources))

        def go_back() -> None:
            for restore in restores:
                restore()

        yield go_back
    finally:
        # Modules that were imported within a run took replacements by name, and laws of scipy the
        # state that they draw from.
        old_of = {
            id(vars(owner).get(name)): old
            for owner, name, old in undo
            if hasattr(owner, "__dict__") and old is not _absent
        }
        for label in set(sys.modules) - loaded:
            names = getattr(sys.modules[label], "__dict__", None) or {}
            for name, value in list(names.items()):
                if id(value) in old_of:
                    names[name] = old_of[id(value)]
                with contextlib.suppress(Exception):  # attributes of some objects raise anything
                    state = vars(value)["_random_state"]
                    vars(value)["_random_state"] = old_of.get(id(state), state)
        for owner, name, old in reversed(undo):
            if isinstance(owner, dict):
                owner[name] = old
            elif name == "cell_contents" or old is not _absent:
                setattr(owner, name, old)
            else:
                delattr(owner, name)
        _one_at_a_time.release()


def _restore(source: Any) -> Callable[[], None]:
    """A function that puts a generator back to where it stands now."""
    if isinstance(source, RecordingRandom):
        return functools.partial(source.setstate, source.getstate())
    if type(source) is RecordingState:
        return functools.partial(source.set_state, source.get_state(legacy=False))
    return functools.partial(setattr, source.bit_generator, "state", source.bit_generator.state)


def _replacements(
    declared: Mapping[Any, Primitive], sources: list[Any]
) -> Iterator[tuple[Any, str, Any]]:
    """All replacements in modules and classes: owner, name, and what is put there.

    ``sources`` are the recording generators that stand in for the global ones of numpy, `random`
    and `secrets`.
    """
    state, shared, system = sources
    yield from _numpy_patches(state)
    yield from _python_patches(shared, system)
    yield from library_patches()
    yield from torch_patches()
    for named, primitive in declared.items():
        owner, name, function = named_function(named)
        new: Any = recording_call(function, primitive)
        is_static = isinstance(vars(owner).get(name), staticmethod)
        yield owner, name, staticmethod(new) if is_static else new


def _numpy_patches(state: Any) -> Iterator[tuple[Any, str, Any]]:
    """Replacements in numpy and in the laws of scipy; ``state`` is the new global generator."""
    for name in {*NOISE, *COINS, *PARAMETRIC, *OTHER_DRAWS}:
        if hasattr(np.random, name):
            method = getattr(state, ALIASES.get(name, name))
            yield np.random, name, within_a_run(method, getattr(np.random, name))
    yield np.random, "seed", within_a_run(state.seed, np.random.seed)
    yield np.random, "default_rng", new_generator
    yield np.random, "Generator", RecordingGenerator
    yield np.random, "RandomState", RecordingState
    # The laws of scipy draw from numpy's global state, unless they are given another generator.
    global_state = vars(np.random.mtrand)["_rand"]
    statistics = sys.modules.get("scipy.stats")
    for law in vars(statistics).values() if statistics is not None else ():
        if getattr(law, "__dict__", {}).get("_random_state") is global_state:
            yield law, "_random_state", state
    yield np.random.mtrand, "_rand", state
    methods: Any = sys.modules.get("numpy._core._methods")
    if hasattr(methods, "um"):
        yield methods, "um", _Clipping(methods.um)
    call_vectorized = np.vectorize.__call__

    def call_once(self: Any, *arguments: Any, **options: Any) -> Any:
        # A further call would only ask for the type.  Its noise would count as released.
        self.cache = self.cache or current_tape() is not None
        return call_vectorized(self, *arguments, **options)

    yield np.vectorize, "__call__", call_once
    for name in ("array", "asarray"):
        yield np, name, _array_of_followed(getattr(np, name))
    for name in ("zeros", "empty", "zeros_like", "empty_like", "cumsum"):
        yield np, name, _blank_array(getattr(np, name))


def _array_of_followed(original: Callable[..., Any]) -> Callable[..., Any]:
    """``np.array``, which follows the noise of numbers in lists and tuples."""

    def array(value: Any, *arguments: Any, **options: Any) -> Any:
        if current_tape() is not None and type(value) in (list, tuple):
            dtype = options.get("dtype", arguments[0] if arguments else None)
            if dtype is not None and np.dtype(dtype) != float:
                return original(use(value), *arguments, **options)
            with contextlib.suppress(TypeError, ValueError):  # e.g. a ragged nest
                followed = follow_nest(value)
                if followed is not None:
                    return followed
        return original(value, *arguments, **options)

    return array


class _Clipping:
    """Replaces the module of ufuncs that the method ``clip`` of arrays calls.

    The tape gets the bounds of each clipping, which must not depend on the data.
    """

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        if name not in ("clip", "minimum", "maximum"):
            return function

        def clip(values: Any, *bounds: Any, **options: Any) -> Any:
            tape = current_tape()
            if tape is not None and np.asarray(plain(values)).dtype.kind == "f":
                # A bound of as many axes as the values may be other data, not a bound for all.
                scalar_bounds = [
                    plain(b) for b in bounds if np.ndim(plain(b)) < max(np.ndim(values), 1)
                ]
                tape.bounds.setdefault(call_site(), []).append(scalar_bounds)
            return function(values, *bounds, **options)

        return clip


def _blank_array(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes arrays; within a run these follow the noise that is written to them.

    Arrays that a library makes for itself stay plain.
    """

    def blank(*arguments: Any, **options: Any) -> Any:
        array = original(*arguments, **options)
        is_plain = type(array) is np.ndarray and array.dtype == float
        frame = inspect.currentframe()
        caller = frame.f_back.f_code.co_filename if frame is not None and frame.f_back else ""
        if current_tape() is None or not is_plain or is_library(caller):
            return array
        if original.__name__ in ("empty", "empty_like"):
            array[...] = 0.0  # uninitialised memory must not reach the results
        return array.view(FollowedArray)

    return blank


def _function_of_noise(original: Callable[..., Any], ufunc: Any) -> Callable[..., Any]:
    """A function of `math` that follows noise alone by the ufunc of numpy."""

    def function(*numbers: Any) -> Any:
        if current_tape() is not None and any(map(is_noise_alone, numbers)):
            return ufunc(*numbers)
        return original(*numbers)

    return function


def _python_patches(shared: Any, system: Any) -> Iterator[tuple[Any, str, Any]]:
    """Replacements in `random`, `secrets` and `math`, with the new generators of the first two."""
    for name in PYTHON_DRAWS:
        yield random, name, within_a_run(getattr(shared, name), getattr(random, name))
    for name in FUNCTIONS_OF_MATH:
        yield math, name, _function_of_noise(getattr(math, name), getattr(np, name))
    yield random, "Random", UnseededRandom
    yield random, "SystemRandom", RecordingSystemRandom
    yield secrets, "SystemRandom", RecordingSystemRandom
    yield secrets, "_sysrand", system
    yield secrets, "randbits", within_a_run(system.getrandbits, secrets.randbits)
    yield secrets, "choice", within_a_run(system.choice, secrets.choice)
    # A bit generator without a seed takes one from here.
    bit_generators = sys.modules["numpy.random.bit_generator"]
    seed_of_run = within_a_run(new_seed_bits, vars(bit_generators)["randbits"])
    yield bit_generators, "randbits", seed_of_run
    yield BaseProcess, "start", noting_a_process(BaseProcess.start)


def named_function(named: Any) -> tuple[Any, str, Any]:
    """The owner, the name and the function that a key of ``primitives`` stands for.

    The key is the function itself or ``"package.module:function"``; the owner is its module or
    class.
    """
    if callable(named):
        named = f"{named.__module__}:{named.__qualname__}"
    module, _, path = str(named).partition(":")
    try:
        owner: Any = sys.modules.get(module) or importlib.import_module(module)
        *within, name = path.split(".")
        for part in within:
            owner = getattr(owner, part)
        return owner, name, getattr(owner, name)
    except (ImportError, AttributeError, ValueError) as error:
        allowed = "functions, names of draws, or package.module:function that can be imported"
        raise ParameterError("primitives", named, allowed) from error


def _replace_references(undo: list[tuple[Any, Any, Any]], function: Any) -> list[Any]:
    """Replace what modules imported by name, and generators that modules and closures hold.

    Each replacement is added to ``undo``; the new generators are returned.
    """
    # By the id of a function that was replaced in its module, what stands there now.  Methods are
    # left out: they are found by their class, where they were replaced.
    new_of = {
        id(old): vars(owner)[name]
        for owner, name, old in undo
        if old is not _absent and not isinstance(owner, type) and callable(old)
    }
    replaced, kinds = frozenset(new_of), frozenset(map(id, PLAIN_KINDS))
    generators: dict[int, Any] = {}  # by the id of a plain generator, the recording one

    def replacement(value: Any) -> Any:
        """What to put in the place of a value; None if it stays."""
        if id(value) in new_of:
            return new_of[id(value)]
        if type(value) in PLAIN_KINDS and id(value) not in generators:
            make: Any = recording_generator if type(value) is PLAIN_GENERATOR else recording_state
            generators[id(value)] = make(value)
        return generators.get(id(value))

    def replace_in(names: Any) -> None:
        """Replace values in a dict of names, such as that of a module."""
        if not isinstance(names, dict):
            return
        # Most modules hold nothing to replace.  All modules have about a hundred thousand names, so
        # the values of each are first tested at once.
        values = list(names.values())
        if replaced.isdisjoint(map(id, values)) and kinds.isdisjoint(map(id, map(type, values))):
            return
        references = [
            (name, value)
            for name, value in list(names.items())
            if id(value) in replaced or id(type(value)) in kinds
        ]
        for name, value in references:
            undo.append((names, name, value))
            names[name] = replacement(value)

    for label, module in list(sys.modules.items()):
        if module is None or f"{label}.".startswith(LEFT_ALONE):
            continue
        replace_in(getattr(module, "__dict__", None))
    replace_in(getattr(function, "__globals__", None))
    replace_in(getattr(getattr(function, "__self__", None), "__dict__", None))
    for cell in getattr(function, "__closure__", None) or ():
        new = replacement(cell.cell_contents)
        if new is not None:
            undo.append((cell, "cell_contents", cell.cell_contents))
            cell.cell_contents = new
    return list(generators.values())
