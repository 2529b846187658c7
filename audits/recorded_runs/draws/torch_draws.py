"""Draws of PyTorch within a recorded run.

An audit records every draw of a run on a tape, and follows noise through the code: it is handed out
as numbers that remember which noise is in them.  Here these are tensors, which do their arithmetic
as the followed arrays of numpy do.  Draws that are no noise, coins, are handed out plain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from audits.recorded_runs.draws.draw_tables import DrawTable
from audits.recorded_runs.draws.numpy_draws import PLAIN_GENERATOR, recorded_noise
from audits.recorded_runs.followed_values import followed
from audits.recorded_runs.noisy_numbers import noisy_among, noisy_of, use
from audits.recorded_runs.tape import current_tape, within_a_run

# functions and operators of tensors, and the ufunc of numpy that follows the noise in them
UFUNCS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "true_divide",
    "true_divide": "true_divide", "neg": "negative", "gt": "greater", "ge": "greater_equal",
    "lt": "less", "le": "less_equal", "abs": "absolute", "sign": "sign", "log": "log",
    "log1p": "log1p", "sqrt": "sqrt", "exp": "exp", "cos": "cos", "sin": "sin",
    "expm1": "expm1", "square": "square",
}  # fmt: skip
# Methods of tensors that keep noise in sight, and the method of arrays that is called instead.
METHODS = {
    "reshape": "reshape", "view": "reshape", "flatten": "reshape", "squeeze": "squeeze",
    "clone": "copy", "detach": "copy", "contiguous": "copy", "cpu": "copy", "to": "copy",
    "double": "copy", "float": "copy", "argmax": "argmax", "argmin": "argmin", "view_as": "",
    "reshape_as": "", "expand_as": "",
}  # fmt: skip
_tensor_classes: dict[str, Any] = {}


def torch_patches() -> Iterator[tuple[Any, str, Any]]:
    """What to replace in PyTorch, if it is loaded: owner, name, replacement."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    _tensor_classes.setdefault("tensor", _tensor_class(torch))
    for owner, name, draw in _noise_draws(torch):
        yield owner, name, within_a_run(draw, getattr(owner, name))
    for name in ("randperm", "randint", "bernoulli", "multinomial"):
        plain = getattr(torch, name)
        yield torch, name, within_a_run(_coin(torch, name, plain), plain)


def _noise(law: str, name: str, *, location: Any, spread: Any, size: Any, dtype: Any) -> Any:
    """A tensor of location + noise of this law and scale, drawn on the tape and followed.

    Of uniform noise ``spread`` is the width.  Without a ``size`` the shape is that of the
    parameters; ``dtype`` is the type of the numbers, by default 64-bit floats.
    """
    tape: Any = current_tape()  # the caller has checked that a tape is active
    location, spread = _array(location), _array(spread)
    shape = (
        tuple(size)
        if size is not None
        else np.broadcast_shapes(np.shape(location), np.shape(spread))
    )
    source: Any = None
    if tape.recorded is None:
        # numpy draws the numbers, so that the state of torch's own generator is not advanced
        source = PLAIN_GENERATOR(np.random.PCG64(tape.new_seed()))
    number = np.float64 if dtype is None or "64" in str(dtype) else np.float32

    def draw() -> Any:
        if law == "uniform":
            drawn = source.uniform(location, np.add(location, spread), shape)
        elif law == "exponential":
            drawn = source.exponential(spread, shape)
        else:
            make = {"gaussian": source.normal, "laplace": source.laplace}
            drawn = make[law](location, spread, shape)
        return np.asarray(drawn).astype(number)

    # The table names the arguments that are location and scale; bounds of uniform noise are known
    # to `recorded_noise` by their names.
    if law == "uniform":
        table = DrawTable({}, law)
        bound_arguments = {"low": location, "high": np.add(location, spread), "size": shape}
        if name != "uniform":  # such as ``rand``, which has no bounds
            bound_arguments = {"size": shape}
    else:
        table = DrawTable({}, law, place="place", spread="scale")
        bound_arguments = {"place": location, "scale": spread, "size": shape}
    return _tensor_of(recorded_noise(tape, name, table, draw, bound_arguments))


def _standard_noise(law: str, name: str, size: Any, dtype: Any) -> Any:
    """Noise at 0 of scale 1; uniform noise is between 0 and 1."""
    return _noise(law, name, location=0.0, spread=1.0, size=size, dtype=dtype)


def _filled_with_noise(tensor: Any, law: str, name: str, *, location: Any, spread: Any) -> Any:
    """Fill a tensor with noise in place, and return it followed."""
    noise = _noise(
        law, name, location=location, spread=spread, size=tensor.shape, dtype=tensor.dtype
    )
    _fill(tensor, noise)
    return noise


def _shape_of(arguments: Any, options: dict[str, Any]) -> Any:
    """The shape that a call asks for: by several numbers, by one shape, or by ``size``."""
    sizes = arguments or [options["size"]]
    return sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes


def _noise_draws(torch: Any) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Recording versions of torch's functions that draw noise: owner, name, function."""
    default = torch.get_default_dtype

    def randn(*size: Any, dtype: Any = None, **options: Any) -> Any:
        return _standard_noise("gaussian", "randn", _shape_of(size, options), dtype or default())

    def rand(*size: Any, dtype: Any = None, **options: Any) -> Any:
        return _standard_noise("uniform", "rand", _shape_of(size, options), dtype or default())

    def randn_like(like: Any, **_: Any) -> Any:
        return _standard_noise("gaussian", "randn_like", like.shape, like.dtype)

    def rand_like(like: Any, **_: Any) -> Any:
        return _standard_noise("uniform", "rand_like", like.shape, like.dtype)

    def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
        dtype = options.get("dtype") or getattr(mean, "dtype", None) or getattr(std, "dtype", None)
        dtype = dtype or default()
        return _noise("gaussian", "normal", location=mean, spread=std, size=size, dtype=dtype)

    def normal_(self: Any, mean: Any = 0.0, std: Any = 1.0, **_: Any) -> Any:
        return _filled_with_noise(self, "gaussian", "normal_", location=mean, spread=std)

    def uniform_(self: Any, low: Any = 0.0, high: Any = 1.0, **_: Any) -> Any:
        return _filled_with_noise(
            self, "uniform", "uniform", location=low, spread=np.subtract(high, low)
        )

    def exponential_(self: Any, lambd: Any = 1.0, **_: Any) -> Any:
        return _filled_with_noise(
            self, "exponential", "exponential_", location=0.0, spread=1 / lambd
        )

    def laplace(self: Any, sample_shape: Any = ()) -> Any:
        size = self._extended_shape(sample_shape)  # torch's own way
        dtype = self.loc.dtype
        return _noise(
            "laplace", "Laplace", location=self.loc, spread=self.scale, size=size, dtype=dtype
        )

    functions: dict[str, Callable[..., Any]] = {
        "randn": randn,
        "rand": rand,
        "randn_like": randn_like,
        "rand_like": rand_like,
        "normal": normal,
    }
    yield from ((torch, name, draw) for name, draw in functions.items())
    methods: dict[str, Callable[..., Any]] = {
        "normal_": normal_,
        "uniform_": uniform_,
        "exponential_": exponential_,
    }
    yield from ((torch.Tensor, name, draw) for name, draw in methods.items())
    yield torch.distributions.Laplace, "rsample", laplace


def _coin(torch: Any, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch whose draws are no noise: they are frozen, and handed out plain."""

    def draw(*arguments: Any, **options: Any) -> Any:
        tape: Any = current_tape()
        inputs = {f"argument {k}": _array(use(x)) for k, x in enumerate(arguments)}
        seed = int(tape.new_seed().generate_state(1)[0])
        options = {key: value for key, value in options.items() if key != "generator"}

        def make() -> Any:
            source = torch.Generator().manual_seed(seed)
            return plain(*map(use, arguments), generator=source, **options).numpy()

        output = tape.draw(name, make, equal=inputs, coins=True).output
        return torch.from_numpy(np.array(output))

    return draw


def _array(value: Any) -> Any:
    """A tensor as an array, which stays followed; other objects as they are."""
    noisy = noisy_of(value)
    if noisy is not None and hasattr(value, "detach"):
        return followed(noisy)
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return value


def _tensor_of(value: Any) -> Any:
    """An array as a tensor, which stays followed."""
    torch = sys.modules["torch"]
    noisy = noisy_of(value)
    if noisy is None:
        return torch.as_tensor(value)
    tensor = torch.from_numpy(np.array(value.as_plain())).as_subclass(_tensor_classes["tensor"])
    tensor.noisy_number = noisy
    return tensor


def _tensor_class(torch: Any) -> Any:
    """The class of followed tensors, made when torch is there."""

    class FollowedTensor(torch.Tensor):  # type: ignore[misc]
        """A tensor that remembers its noise."""

        noisy_number = None

        def as_plain(self) -> Any:
            """The plain tensor."""
            return self.as_subclass(torch.Tensor)

        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, arguments: Any = (), options: Any = None
        ) -> Any:
            with torch._C.DisableTorchFunctionSubclass():  # torch's own way  # noqa: SLF001
                return _call_of_torch(function, arguments, options or {})

    return FollowedTensor


def _call_of_torch(function: Any, arguments: Any, options: Any) -> Any:
    """Call a function of torch of which an argument is followed.

    Arithmetic and indexing give followed tensors; any other function uses its arguments.
    """
    function_name: str = getattr(function, "__name__", "")
    if function_name in ("__get__", "as_subclass", "__set__", "size", "dim"):
        return function(*arguments, **options)
    is_any_unused = not all(noisy.used for noisy in noisy_among(arguments))
    result: Any = None
    if current_tape() is not None and is_any_unused:
        result = _arithmetic_or_indexing(function_name, arguments, options)
    if result is None:
        plain_options = {key: use(value) for key, value in options.items()}
        return function(*map(use, arguments), **plain_options)
    # Functions in place end in one underscore, as add_ does, or have an i after two, as __iadd__.
    ends_in_underscore = function_name.endswith("_") != function_name.startswith("__")
    if ends_in_underscore or function_name[2:3] == "i":
        _fill(arguments[0], result)
    return result


def _arithmetic_or_indexing(function_name: str, arguments: Any, options: Any) -> Any:
    """The followed result of arithmetic or indexing; None for other functions."""
    name = function_name.strip("_")
    # __radd__ has its operands in the other order, and __iadd__ works in place: both are add
    reflected = name[:1] == "r" and name[1:] in UFUNCS
    base = name[1:] if reflected or (name[:1] == "i" and name[1:] in UFUNCS) else name
    if base in UFUNCS and not options:
        parts = [_array(x) for x in (reversed(arguments) if reflected else arguments)]
        return _tensor_of(getattr(np, UFUNCS[base])(*parts))
    if function_name in METHODS and not options.keys() - {"dim"}:
        return _result_of_method(name, arguments)
    if function_name == "__getitem__":
        value, key = arguments
        index = tuple(map(_array, key)) if isinstance(key, tuple) else _array(key)
        return _tensor_of(_array(value)[index])
    return None


def _fill(target: Any, result: Any) -> None:
    """Put the numbers into the tensor that an operation in place changes."""
    plain = target.as_plain() if noisy_of(target) is not None else target
    plain.data.copy_(result.as_plain() if noisy_of(result) is not None else result)


def _result_of_method(name: str, arguments: Any) -> Any:
    """The followed result of a method that reshapes or copies, or finds the largest element."""
    value = _array(arguments[0])
    if name.endswith("_as"):
        return _tensor_of(value.reshape(tuple(arguments[1].shape)))
    if METHODS[name] == "copy":
        return _tensor_of(value.copy())
    if name == "flatten":
        return _tensor_of(value.reshape(-1))
    return _tensor_of(getattr(value, METHODS[name])(*arguments[1:]))
