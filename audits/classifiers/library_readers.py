"""How the walk over one output of a release reads the types of numpy, torch, pandas and the like.

An audit guesses from an output of a release which value it came from, and its classifier needs
numbers.  `OutputWalk` takes an output apart; for a type of a library it calls the reader in
`LIBRARY_READERS` whose name is the package and the class, such as "pandas.DataFrame".  Subclasses
are read in the same way, and no library is imported here.

A reader tells the walk two kinds of facts: ``walk.word`` takes text that describes the structure
(type, dtype, shape), ``walk.array`` takes numbers.  ``walk.part`` and ``walk.items`` walk into
the values inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from audits.classifiers.output_walk import MAX_NUMBERS, OutputWalk, Reader, type_name
from audits.runs.release_functions import plain_array

LIBRARY_READERS: dict[str, Reader] = {}
# numpy's kinds of numbers: bool, int, unsigned, float, complex, duration and date
NUMERIC = "biufcmM"  # V, which is not among them, are raw bytes


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Enter a reader in the table under the names of its types."""

    def entered(reader: Reader) -> Reader:
        LIBRARY_READERS.update(dict.fromkeys(names, reader))
        return reader

    return entered


def read_array(output: Any, walk: OutputWalk) -> None:
    """Read an array or one of its elements: numbers, times, texts, records or objects."""
    walk.word(array_word(output))
    if getattr(output.dtype, "metadata", None):
        walk.part(".dtype.metadata", dict(output.dtype.metadata))
    values, fields = np.asarray(output), getattr(output, "dtype", np.dtype(object)).names
    if fields is not None:
        for name in fields:
            walk.part(f"[{name!r}]", output[name])
    elif values.dtype.kind in NUMERIC:
        walk.array(values)
    elif values.dtype.kind != "V":  # texts and objects
        walk.items(values.ravel().tolist())
    else:  # elements that numpy has no kind for: bfloat16 converts, raw bytes do not
        try:
            walk.array(values.astype(float))
        except (TypeError, ValueError):
            walk.array(np.frombuffer(values.tobytes(), np.uint8))


def array_word(output: Any) -> str:
    """The structure of an array: its type, that of its elements, its shape, and how it is stored.

    Arrays that are stored in the usual order and can be written to have no word for it.
    """
    flags = getattr(output, "flags", None)
    order = (
        "" if flags is None or flags.c_contiguous else " F" if flags.f_contiguous else " strided"
    )
    read_only = "" if flags is None or flags.writeable or output.ndim == 0 else " read-only"
    return f"{type_name(output)} {output.dtype} {output.shape}{order}{read_only}"


@reads("numpy.MaskedArray", "numpy.ma.MaskedArray", "numpy.mvoid")
def _read_masked(output: Any, walk: OutputWalk) -> None:
    # the numbers under the mask are a part of the output, and can reveal the data
    walk.word(type_name(output))
    walk.part(".data", np.asarray(output.data))
    walk.part(".mask", np.ma.getmaskarray(output))
    # Numpy's own fill values are as large as 1e20: in a sum they would hide the other numbers.
    fill_value = getattr(output, "fill_value", None)
    if str(fill_value) != str(np.ma.default_fill_value(output.data)):
        walk.part(".fill_value", fill_value)


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
    if output.size <= MAX_NUMBERS >= np.prod(output.shape):  # small enough for all its zeros
        walk.array(output.toarray())
    for name, value in sorted(vars(output).items()):  # stored zeros and the order
        walk.part(f".{name}", value)


@reads("pandas.DataFrame")
def _read_frame(output: Any, walk: OutputWalk) -> None:
    dtypes, labels = output.dtypes.tolist(), output.columns.tolist()
    for word in frame_words(output, labels, dtypes):
        walk.word(word)
    walk.part(".columns", labels)
    for position, label in enumerate(labels):
        walk.path.append(f"[{label!r}]")
        _read_column(output.iloc[:, position], walk)
        walk.path.pop()
    _read_index_and_notes(output, walk)


def frame_words(output: Any, labels: list[Any], dtypes: list[Any]) -> list[str]:
    """The structure of a frame; the dtypes of its columns are a part of it."""
    return [f"{type_name(output)} {len(output)} {len(labels)}", " ".join(map(str, dtypes))]


@reads("pandas.Series")
def _read_series(output: Any, walk: OutputWalk) -> None:
    walk.word(series_word(output))
    walk.part(".name", output.name)
    _read_column(output, walk)
    _read_index_and_notes(output, walk)


def series_word(output: Any) -> str:
    """The structure of a series."""
    return f"{type_name(output)} {output.dtype} {len(output)}"


@reads("pandas.Index")
def _read_index(output: Any, walk: OutputWalk) -> None:
    walk.word(index_word(output))
    if type(output).__name__ != "RangeIndex":
        walk.part("", list(output.names))
        _read_column(output, walk)


def index_word(index: Any) -> str:
    """The structure of an index; a RangeIndex has no other content."""
    if type(index).__name__ == "RangeIndex":
        return f"RangeIndex {index.start} {index.stop} {index.step} {index.names}"
    return f"{type(index).__name__} {index.dtype} {len(index)}"


@reads("pandas.ExtensionArray", "pandas.Categorical")
def _read_extension(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.dtype} {len(output)}")
    _read_column(output, walk)


def _read_column(column: Any, walk: OutputWalk) -> None:
    """The values of a series, an index or an extension array of pandas."""
    dtype, kind = column.dtype, getattr(column.dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind in NUMERIC:
        walk.array(np.asarray(column))
    elif kind in "mM":  # dates with a time zone, which is a part of the dtype
        walk.array(np.asarray(column, dtype=f"{kind}8[ns]"))
    elif kind in "biuf":  # numbers of which some may be missing
        walk.array(np.asarray(column.to_numpy(dtype=float, na_value=np.nan)))
        walk.array(np.asarray(column.isna()))
    elif hasattr(dtype, "categories"):
        codes = column.cat.codes if hasattr(column, "cat") else column.codes
        walk.part("", list(dtype.categories))
        walk.array(np.asarray(codes))
    else:
        walk.part("", list(column))


def _read_index_and_notes(output: Any, walk: OutputWalk) -> None:
    walk.part(".index", output.index)
    if output.attrs:
        walk.part(".attrs", output.attrs)


@reads("polars.DataFrame")
def _read_polars_frame(output: Any, walk: OutputWalk) -> None:
    walk.word(f"polars {type_name(output)} {output.shape}")
    for column in output.get_columns():
        walk.part(f"[{column.name!r}]", column)


@reads("polars.Series")
def _read_polars_series(output: Any, walk: OutputWalk) -> None:
    walk.word(f"polars {type_name(output)} {output.name!r} {output.dtype} {len(output)}")
    numeric = output.dtype.is_numeric() and not output.dtype.is_decimal()
    if numeric or str(output.dtype) == "Boolean":
        missing = output.is_null().to_numpy()
        values = output.to_numpy()
        walk.array(np.asarray(values, dtype=float) if missing.any() else values)
        if missing.any():
            walk.array(missing)
    else:
        walk.part("", output.to_list())


@reads("polars.LazyFrame")
def _read_lazy(output: Any, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.part(".collect()", output.collect())


@reads("pyarrow.Table", "pyarrow.RecordBatch")
def _read_table(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.shape} {output.schema.metadata}")
    for position, name in enumerate(output.column_names):
        walk.word(f"column {name!r} {output.schema.field(position).metadata}")
        walk.part(f"[{name!r}]", output.column(position))


@reads("pyarrow.Array", "pyarrow.ChunkedArray")
def _read_arrow(output: Any, walk: OutputWalk) -> None:
    chunks = getattr(output, "num_chunks", 1)
    walk.word(f"{type_name(output)} {output.type} {len(output)} {chunks}")
    missing = output.is_null().to_pylist() if output.null_count else []
    if str(output.type) in {"bool", "float", "double"} or "int" in str(output.type):
        values = output.to_numpy(zero_copy_only=False)
        walk.array(np.asarray(values, dtype=float) if missing else values)
        if missing:
            walk.array(np.array(missing))
    else:
        walk.part("", output.to_pylist())


@reads("pyarrow.Scalar")
def _read_arrow_scalar(output: Any, walk: OutputWalk) -> None:
    walk.word(f"{type_name(output)} {output.type}")
    walk.part("", output.as_py())
