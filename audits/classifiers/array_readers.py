"""How a walk reads arrays and tensors; types of libraries by their names, nothing is imported.

A name is the package and the class, such as "pandas.DataFrame"; subclasses are read alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.classifiers.output_walk import MAX_NUMBERS, OutputWalk, Reader, type_name
from audits.runs.release_functions import plain_array

LIBRARY_READERS: dict[str, Reader] = {}
NUMERIC = "biufcmM"


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Enter a reader in the table under the names of its types."""

    def entered(reader: Reader) -> Reader:
        LIBRARY_READERS.update(dict.fromkeys(names, reader))
        return reader

    return entered


def read_array(output: Any, walk: OutputWalk) -> None:
    """Read an array or one of its elements: numbers, times, texts, records or objects."""
    walk.word(array_word(output))
    values, fields = np.asarray(output), getattr(output, "dtype", np.dtype(object)).names
    if fields is not None:
        for name in fields:
            walk.part(f"[{name!r}]", output[name])
    elif values.dtype.kind in NUMERIC:
        walk.array(values)
    elif values.dtype.kind != "V":
        walk.items(values.ravel().tolist())
    else:
        _read_unknown_elements(values, walk)


def array_word(output: Any) -> str:
    """The structure of an array: its type, that of its elements, its shape."""
    return f"{type_name(output)} {output.dtype} {output.shape}"


@reads("numpy.MaskedArray", "numpy.ma.MaskedArray", "numpy.mvoid")
def _read_masked(output: Any, walk: OutputWalk) -> None:
    # what lies under the mask is in the output too
    walk.word(type_name(output))
    walk.part(".data", np.asarray(output.data))
    walk.part(".mask", np.ma.getmaskarray(output))


@reads("torch.Tensor")
def read_tensor(output: Any, walk: OutputWalk) -> None:
    """Read a tensor of any device, sparse or with a gradient."""
    walk.word(f"{type_name(output)} {output.dtype} {tuple(output.shape)} {output.requires_grad}")
    values = plain_array(output)
    walk.part("", values)
    if getattr(output, "grad", None) is not None:
        walk.part(".grad", output.grad)


@reads("jaxlib.ArrayImpl", "jax.ArrayImpl")
def _read_device_array(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.dtype} {output.shape}")
    walk.part("", np.asarray(output))


@reads("torch.dtype", "torch.device", "numpy.dtype", "pandas.NAType", "pandas.NaTType")
def _read_name(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output}")


@reads("scipy._spbase")
def _read_sparse(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.dtype} {output.shape}")
    if output.size <= MAX_NUMBERS >= np.prod(output.shape):  # numbers at their places
        walk.array(output.toarray())
    for name, value in sorted(vars(output).items()):  # what is stored, zeros and order included
        walk.part(f".{name}", value)


def _read_unknown_elements(values: NDArray[Any], walk: OutputWalk) -> None:
    """Elements that numpy has no kind for: bfloat16 converts, raw bytes do not."""
    try:
        walk.array(values.astype(float))
    except (TypeError, ValueError):
        walk.array(np.frombuffer(values.tobytes(), np.uint8))
