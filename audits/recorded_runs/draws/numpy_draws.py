"""Generators of numpy that record their draws: followed noise, and coins.

An audit runs a function on data, and again on neighbouring data with the same random numbers.  In
the first run the methods of these generators write each draw as an event to the `Tape`; in the
second they hand out the recorded numbers.  Draws in the table `NOISE` are handed out as followed
numbers, as they may hide private values: in ``x + rng.laplace()`` the sum remembers, as a `View`,
that it is x plus noise of scale 1.  So the audit learns how far x differs between the runs, and
computes what the noise hides of that.  Draws in the table `COINS` choose samples, orders or batches
rather than hide values; the code gets them as plain numbers, the same in both runs.  Draws whose
parameters may be private are in `parametric_draws`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.call_sites import call_site, draw_site
from audits.recorded_runs.draws.draw_tables import COINS, NOISE, DrawTable, bound
from audits.recorded_runs.draws.parametric_draws import PARAMETRIC, permuted_places
from audits.recorded_runs.draws.record_coins import (
    are_records,
    coins_of_records,
    is_one_per_record,
    places_of_records,
)
from audits.recorded_runs.followed_values import followed
from audits.recorded_runs.noisy_numbers import NoisyNumber, use
from audits.recorded_runs.tape import (
    Tape,
    current_tape,
    seed_in_place_of,
    tape_of_draw,
    unrecorded,
)
from audits.recorded_runs.views import View

PLAIN_GENERATOR: Any = np.random.Generator
PLAIN_STATE: Any = np.random.RandomState
ROUND_OFF = 1e-12  # variances below this share of the largest one are 0


@final
class NoiseTerms(NamedTuple):
    """A draw as location + factor x noise."""

    location: Any  # may differ between the runs: this is the private value that the noise hides
    factor: Any
    scale: Any  # of the noise, on which its privacy loss depends
    equal: dict[str, Any]  # what else the law depends on, by name; it must be equal in both runs


def _terms_of(name: str, table: DrawTable, arguments: dict[str, Any]) -> NoiseTerms:
    """The terms of a draw with these plain arguments, of which the table says what they are."""
    if name == "uniform":
        # low + (high - low) x noise that is uniform on [0, 1]: only the width must be equal.
        width = np.subtract(arguments["high"], arguments["low"])
        equal = {"width": width, "size": arguments.get("size")}
        return NoiseTerms(arguments["low"], width, 1.0, equal)
    equal = {key: value for key, value in arguments.items() if key not in (table.place, "out")}
    scale = arguments[table.spread] if table.spread else 1.0
    if table.law == "geometric":
        # One more trial changes the log-probability by ln(1 - p), as a step of 1 changes that of
        # exponential noise of scale -1 / ln(1 - p); losses are computed from this scale.
        with np.errstate(all="ignore"):
            scale = -1 / np.log1p(-np.asarray(arguments["p"], dtype=float))
    return NoiseTerms(arguments.get(table.place, 0.0), 1.0, scale, equal)


def recorded_noise(
    tape: Tape, name: str, table: DrawTable, draw: Any, bound_arguments: dict[str, Any]
) -> Any:
    """Draw noise on the tape and return it followed.

    ``draw`` makes the plain numbers; ``table`` says which of the ``bound_arguments``, the arguments
    by name, are the location and the scale.  Two kinds of draws are no noise and are returned
    plain: those at a call site that is known to be public, and uniform numbers, or numbers of a law
    without a formula for its loss, of which each record has its own.
    """
    arguments = {key: use(value) for key, value in bound_arguments.items()}
    terms, out = _terms_of(name, table, arguments), arguments.get("out")
    # Where one of the data sets lacks a record, as many such numbers as records are their coins.
    if table.law in ("uniform", "unknown") and is_one_per_record(tape, arguments.get("size")):
        equal = {
            key: np.asarray(value) if np.ndim(value) else value
            for key, value in arguments.items()
            if key not in ("size", "out")
        }
        return coins_of_records(tape, name, draw, arguments["size"], equal)
    if draw_site() in tape.public:
        # Public numbers hide nothing, so their location must be equal in both runs too.
        location = {table.place: terms.location} if table.place else {}
        return _public_numbers(tape, name, draw, terms.equal | location, out)
    earlier_draw = tape.expected()  # in the second run the recorded draw, in the first None
    event = tape.draw(name, draw, equal=terms.equal)
    shape = event.shape
    # Each number of the draw is a sum of one part, the last axis of ``noises`` and ``factors``.
    noises = tape.noises_of(table.law, event.output, terms.scale, name)
    factors = np.broadcast_to(np.asarray(terms.factor, dtype=float), shape)[..., None]
    value = np.broadcast_to(np.asarray(terms.location, dtype=float), shape)
    if shape != np.broadcast_shapes(shape, np.shape(terms.location)):
        tape.leave(event.site, f"{name} has another shape in the second run")
    # Pure noise hides no value yet.  The replay takes over what the first run found.
    pure = table.law == "uniform" or not np.any(value)
    if earlier_draw is not None:
        pure = earlier_draw.noisy is not None and earlier_draw.noisy.pure
    view = View(noises, np.array(factors), np.array(value))
    noise = NoisyNumber(event.output, event.site, view, pure)
    # One uniform number for each record is probably the coin that samples the record.  The event
    # says so, though the numbers are followed as noise.
    coins = table.law == "uniform" and shape[:1] == (tape.records,)
    tape.complete(event, coins=coins, noisy=noise)
    if out is not None:
        np.copyto(np.asarray(out), event.output)
    return followed(noise)


def _public_numbers(tape: Tape, name: str, draw: Any, equal: dict[str, Any], out: Any) -> Any:
    """Draw public numbers, which are no noise, and return them plain, the same in both runs."""
    if is_one_per_record(tape, equal.get("size")):
        return coins_of_records(tape, name, draw, equal.pop("size"), equal)
    event = tape.draw(name, draw, equal=equal)
    tape.complete(event, coins=event.shape[:1] == (tape.records,))
    if out is not None:
        np.copyto(np.asarray(out), event.output)
        return out
    return np.copy(event.output) if np.ndim(event.output) else event.output


def _noise_method(name: str, table: DrawTable, base: Any) -> Callable[..., Any]:
    """A method of a generator that draws noise, recorded within a run."""
    original = getattr(base, name)

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return original(self, *arguments, **options)
        bound_arguments = bound(table, arguments, options)
        if bound_arguments.get("out") is not None:
            # The tape draws new numbers, as many as ``out`` has, and copies them there.
            bound_arguments["size"] = np.shape(bound_arguments["out"])
            arguments, options = (), bound_arguments

        def draw() -> Any:
            plain_options = {k: use(v) for k, v in options.items() if k != "out"}
            return unrecorded(original, self, *map(use, arguments), **plain_options)

        return recorded_noise(tape, name, table, draw, bound_arguments)

    return method


def _coin_method(name: str, table: DrawTable, base: Any) -> Callable[..., Any]:
    """A method of a generator that draws coins, recorded within a run.

    Integers from 0 to the number of records are taken for row numbers, and as many numbers as
    records for a coin of each: the replay then leaves out what belongs to a missing record.
    """
    original = getattr(base, name)

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return original(self, *arguments, **options)
        arguments, options = use(arguments), {k: use(v) for k, v in options.items()}
        bound_arguments = bound(table, arguments, options)
        draw = lambda: original(self, *arguments, **options)  # noqa: E731
        high = _end_of_places(bound_arguments) if name in ("integers", "randint") else None
        # ``bound_arguments`` has all arguments by name; ``high`` is the number of possible rows.
        if high is not None and are_records(tape, high):
            return places_of_records(
                tape, name, draw, high, bound_arguments["size"], distinct=False
            )
        if is_one_per_record(tape, bound_arguments.get("size")):
            return coins_of_records(tape, name, draw, bound_arguments.pop("size"), bound_arguments)
        output = tape.draw(name, draw, equal=bound_arguments, coins=True).output
        return np.copy(output) if isinstance(output, np.ndarray) else output

    return method


def gaussian_root(cov: Any) -> Any:
    """A matrix whose product with independent Gaussian noises of scale 1 has this covariance."""
    variances, axes = np.linalg.eigh(cov)
    is_noisy = variances > ROUND_OFF * variances.max(initial=0.0)
    return axes * np.sqrt(np.where(is_noisy, variances, 0.0))


def multivariate_normal(
    self: Any, mean: Any, cov: Any, size: Any = None, *arguments: Any, **options: Any
) -> Any:
    """The method ``multivariate_normal``: a linear map of independent Gaussian noises, plus a mean.

    Along axes of ``cov`` without noise, any move of the mean is seen.
    """
    base = PLAIN_GENERATOR if isinstance(self, PLAIN_GENERATOR) else PLAIN_STATE
    tape = tape_of_draw()
    if tape is None:
        return base.multivariate_normal(self, mean, cov, size, *arguments, **options)
    mean, cov = np.asarray(use(mean), dtype=float), np.asarray(use(cov), dtype=float)

    def draw() -> Any:
        return unrecorded(base.multivariate_normal, self, mean, cov, size, *arguments, **options)

    if draw_site() in tape.public:
        return _public_numbers(
            tape, "multivariate_normal", draw, {"mean": mean, "cov": cov, "size": size}, None
        )
    expected = tape.expected()
    event = tape.draw("multivariate_normal", draw, equal={"cov": cov, "size": size})
    if event.shape[-1:] != mean.shape:  # then ``cov`` differs too, which is a finding
        return np.copy(event.output)
    root = gaussian_root(cov)
    shape = (*event.shape[:-1], root.shape[1])
    noises = tape.number_noises("gaussian", 1.0, "multivariate_normal", shape)[..., 0]
    parts = (*event.shape, root.shape[1])
    view = View(
        np.broadcast_to(noises[..., None, :], parts),
        np.broadcast_to(root, parts),
        np.broadcast_to(mean, event.shape),
    )
    is_pure = (
        not mean.any() if expected is None else expected.noisy is not None and expected.noisy.pure
    )
    noise = NoisyNumber(event.output, event.site, view, is_pure)
    tape.complete(event, noisy=noise)
    return followed(noise)


def _end_of_places(bound_arguments: dict[str, Any]) -> Any:
    """The end of integers from 0 to before it, which may be row numbers; None for other integers.

    With a single argument, ``low`` is this end, as in numpy.
    """
    low, high = bound_arguments["low"], bound_arguments.get("high")
    low, high = (0, low) if high is None else (low, high)
    starts_at_zero = np.ndim(low) == 0 and low == 0 and not bound_arguments.get("endpoint", False)
    return high if starts_at_zero and np.ndim(high) == 0 else None


def _parametric_method(name: str, base: Any) -> Callable[..., Any]:
    """A method of `PARAMETRIC`, such as ``choice``, recorded within a run."""
    original = getattr(base, name)

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        tape = tape_of_draw()
        if tape is None:
            return original(self, *arguments, **options)
        sample = functools.partial(unrecorded, original, self)
        parametric: Any = PARAMETRIC[name]
        return parametric(tape, sample, *arguments, **options)

    return method


def _permutation(self: Any, x: Any, axis: int = 0) -> Any:
    """The method ``permutation``: this run's data, in an order that the tape gives."""
    tape = tape_of_draw()
    base = PLAIN_GENERATOR if isinstance(self, PLAIN_GENERATOR) else PLAIN_STATE
    if tape is None:
        return base.permutation(self, x) if axis == 0 else base.permutation(self, x, axis)
    x = use(x)
    count = int(x) if np.ndim(x) == 0 else np.shape(x)[axis]
    sample = functools.partial(unrecorded, base.permutation, self)
    order = permuted_places(tape, sample, count, "permutation")
    return order if np.ndim(x) == 0 else np.take(np.asarray(x), order, axis)


def _shuffle(self: Any, x: Any, axis: int = 0) -> None:
    """The method ``shuffle``: the tape gives an order, to which ``x`` is rearranged in place."""
    tape = tape_of_draw()
    base = PLAIN_GENERATOR if isinstance(self, PLAIN_GENERATOR) else PLAIN_STATE
    if tape is None:
        base.shuffle(self, x) if axis == 0 else base.shuffle(self, x, axis)
        return
    count = len(x) if axis == 0 else np.shape(x)[axis]
    sample = functools.partial(unrecorded, base.permutation, self)
    order = permuted_places(tape, sample, count, "shuffle")
    if isinstance(x, np.ndarray):
        x[...] = np.take(x, order, axis)
    else:
        x[:] = [x[k] for k in order]


def _permuted(self: Any, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
    """The method ``permuted``, which shuffles each slice along the axis on its own.

    The tape gives one uniform key for each element, and each slice is sorted by its keys.
    """
    tape = tape_of_draw()
    if tape is None:
        return PLAIN_GENERATOR.permuted(self, x, axis=axis, out=out)
    x = np.asarray(use(x))
    shape = x.shape if axis is not None else (x.size,)
    keys = tape.draw(
        "permuted",
        lambda: PLAIN_GENERATOR.random(self, shape),
        coins=True,
        equal={"the shape of the argument": x.shape},
    ).output
    order = np.argsort(keys, axis=-1 if axis is None else axis)
    if axis is None:
        permuted = x.ravel()[order].reshape(x.shape)
    else:
        permuted = np.take_along_axis(x, order, axis)
    if out is not None:
        out[...] = permuted
        return out
    return permuted


class _LooksLikeBase(type):
    """The type of a class that counts every instance of its base as its own.

    In a run it replaces the base, so that ``isinstance(x, np.random.Generator)`` stays true for
    generators that were made before.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])  # the base


class RecordingGenerator(np.random.Generator, metaclass=_LooksLikeBase):
    """A generator of numpy that records within a run."""

    def __init__(self, bit_generator: Any) -> None:
        seed = seed_in_place_of(None)
        super().__init__(bit_generator if seed is None else np.random.PCG64(seed))

    @property
    def bit_generator(self) -> Any:
        """The source of bits, of which code may draw what is not recorded."""
        tape = current_tape()
        if tape is not None and tape.recorded is None:
            tape.elsewhere.append(call_site())
        return super().bit_generator

    def __reduce__(self) -> Any:
        return RecordingGenerator, (self.bit_generator,)


class RecordingState(np.random.RandomState, metaclass=_LooksLikeBase):
    """A legacy random state of numpy that records within a run."""

    def __init__(self, seed: Any = None) -> None:
        new_seed = seed_in_place_of(None)
        super().__init__(_recorded_seed(seed) if new_seed is None else np.random.MT19937(new_seed))

    def seed(self, seed: Any = None) -> None:
        """Seed the state, with what must be equal in both runs."""
        super().seed(_recorded_seed(seed))


for _class, _base in ((RecordingGenerator, PLAIN_GENERATOR), (RecordingState, PLAIN_STATE)):
    for _name, _table in NOISE.items():
        if hasattr(_base, _name):
            setattr(_class, _name, _noise_method(_name, _table, _base))
    for _name, _table in COINS.items():
        if hasattr(_base, _name):
            setattr(_class, _name, _coin_method(_name, _table, _base))
    for _name in PARAMETRIC:
        setattr(_class, _name, _parametric_method(_name, _base))
    for _name, _method in (
        ("permutation", _permutation), ("shuffle", _shuffle), ("permuted", _permuted),
        ("multivariate_normal", multivariate_normal),
    ):  # fmt: skip
        if hasattr(_base, _name):  # a state has no ``permuted``
            setattr(_class, _name, _method)


def recording_generator(source: np.random.Generator) -> RecordingGenerator:
    """A recording generator at the same state; the source itself is not advanced."""
    if type(source) is RecordingGenerator:
        return source
    return RecordingGenerator(copy.deepcopy(source.bit_generator))


def recording_state(source: np.random.RandomState) -> RecordingState:
    """A recording random state at the same state; the source itself is not advanced."""
    state = RecordingState()
    state.set_state(source.get_state(legacy=False))
    return state


def _recorded_seed(seed: Any) -> Any:
    """A seed, which must be equal in both runs: one of private data reveals them."""
    tape = current_tape()
    if tape is not None and seed is not None and not isinstance(seed, np.random.BitGenerator):
        tape.call("generator", lambda: None, equal={"seed": use(seed)})
    return use(seed)


def new_generator(seed: Any = None) -> Any:
    """``default_rng`` within a run: without a seed it draws from the run's own entropy."""
    tape = tape_of_draw()
    if tape is None:
        return _plain_default_rng(seed_in_place_of(seed))
    if isinstance(seed, PLAIN_GENERATOR):
        return recording_generator(seed)
    if seed is None:
        return RecordingGenerator(np.random.PCG64(tape.new_seed()))
    if not isinstance(seed, (np.random.BitGenerator, np.random.SeedSequence)):
        # A seed that is computed from private data reveals them, so it must be equal in both runs.
        tape.call("default_rng", lambda: None, equal={"seed": use(seed)})
    return RecordingGenerator(_plain_default_rng(use(seed)).bit_generator)


# numpy's own function, which `new_generator` replaces in a run
_plain_default_rng = np.random.default_rng
