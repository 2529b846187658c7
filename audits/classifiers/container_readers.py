"""How a walk reads what has parts: mappings, sets, sequences, iterators, functions, errors."""

from __future__ import annotations

import array
import collections
import io
import itertools
import sys
import types
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.classifiers.object_reader import read_any, read_fields, read_items, read_own_fields
from audits.classifiers.output_walk import MAX_WORDS, OutputWalk, type_name

PLAIN_KEYS = (str, int, float, bool, bytes, type(None))  # whose repr is their value


@read_any.register
def _(output: array.array, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(f"array {output.typecode}")
    walk.part("", output.tounicode() if output.typecode in "uw" else np.asarray(output))


@read_any.register
def _(output: Mapping, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    keys = list(itertools.islice(output, MAX_WORDS))
    words = [key_word(key, walk) for key in keys]
    mapping_words(type_name(output), words, walk)
    if isinstance(output, dict) and type(output).__iter__ is not dict.__iter__:
        walk.part(".stored", list(dict.items(output)))  # its own methods may hide some
    elif len(output) > len(keys):
        walk.blind(f"{type(output).__name__} with more than {MAX_WORDS:,} keys")
    for at in sorted(range(len(keys)), key=words.__getitem__):
        walk.part(f"[{words[at]}]", output[keys[at]])
    if isinstance(output, collections.defaultdict):
        walk.part(".default_factory", output.default_factory)
    read_own_fields(output, walk)


@read_any.register
def _(output: Set, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(type_name(output))
    walk.word(f"items {len(output)}")
    for one in sorted(output, key=lambda item: key_word(item, walk)):  # sets have no order
        walk.part("{}", one)
    read_own_fields(output, walk)


@read_any.register(tuple)
@read_any.register(list)
def _(output: Any, walk: OutputWalk) -> None:
    base = list if isinstance(output, list) else tuple
    if type(output) is not base and type(output).__iter__ is not base.__iter__:
        walk.part(".stored", base(base.__getitem__(output, slice(None))))  # it may hide some
        read_items(output, walk)
        read_own_fields(output, walk)
        return
    numbers = equal_numbers([output])
    if numbers is None:
        walk.word(f"{type_name(output)} {len(output)}")
        walk.items(output)
    else:
        walk.word(f"{type_name(output)} {len(output)} {numbers.dtype}")
        walk.array(numbers)
    read_own_fields(output, walk)


@read_any.register
def _(output: collections.deque, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(f"{type_name(output)} {len(output)} {output.maxlen}")
    walk.items(output)


@read_any.register
def _(output: Iterator, walk: OutputWalk) -> None:  # type: ignore[type-arg]
    walk.word(type_name(output))
    if isinstance(output, types.GeneratorType):
        returned: list[Any] = []
        read_items(_with_result(output, returned), walk)
        walk.part(".result", returned)
    else:
        read_items(output, walk)


def _with_result(output: Any, returned: list[Any]) -> Iterator[Any]:
    """The items of a generator; what it returns at its end goes to the list."""
    returned.append((yield from output))


@read_any.register
def _(output: io.IOBase, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    if isinstance(output, (io.StringIO, io.BytesIO)):
        walk.part("", output.getvalue())
        walk.number(float(output.tell()))
    else:  # reading it would change it
        walk.blind(type(output).__name__)


@read_any.register
def _(output: BaseException, walk: OutputWalk) -> None:
    walk.word(type_name(output))
    walk.part(".args", output.args)
    walk.part(".__cause__", output.__cause__)
    walk.part(".__context__", output.__context__)
    read_fields(output, walk)


@read_any.register(type)
@read_any.register(types.ModuleType)
@read_any.register(types.BuiltinFunctionType)
def _(output: Any, walk: OutputWalk) -> None:
    name = getattr(output, "__qualname__", output.__name__)
    walk.word(f"{type_name(output)} {name}")
    if isinstance(output, types.BuiltinFunctionType):
        if not isinstance(output.__self__, types.ModuleType | None):
            walk.part(".__self__", output.__self__)
        return
    home = getattr(output, "__module__", output.__name__)
    known = sys.modules.get(home)
    for step in name.split(".") if isinstance(output, type) else ():
        known = getattr(known, step, None)
    if known is not output:  # made by the release
        walk.blind(type_name(output))


@read_any.register
def _(output: types.FunctionType, walk: OutputWalk) -> None:
    walk.word(f"function {output.__qualname__}")
    cells = [cell.cell_contents for cell in output.__closure__ or ()]
    walk.part(".closure", cells)
    walk.part(".defaults", (output.__defaults__, output.__kwdefaults__))
    if not (cells or output.__defaults__ or output.__kwdefaults__):
        walk.blind("function")  # what it computes is not known


@read_any.register
def _(output: types.MethodType, walk: OutputWalk) -> None:
    walk.word(f"method {output.__qualname__}")
    walk.part(".__self__", output.__self__)


def equal_numbers(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """Lists of as many numbers of one type of Python's own, as an array; None if they are not."""
    kinds = set(map(type, itertools.chain.from_iterable(outputs)))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in {float, int, bool} or len(outputs[0]) < 2:
        return None
    numbers = np.array(outputs)
    return numbers if numbers.dtype == np.dtype(kind) else None  # integers may be long


def key_word(key: Any, walk: OutputWalk) -> str:
    """A key or an item as a word that depends on its value, not on its address."""
    if type(key) in PLAIN_KEYS or (
        type(key) is tuple and all(type(element) in PLAIN_KEYS for element in key)
    ):
        return repr(key)
    inner = OutputWalk(walk.reader_of)
    inner.read(key)
    exact = [inner.row().tobytes(), *inner.exact]
    return f"{' '.join(inner.words)} {b' '.join(exact).hex()}"


def mapping_words(name: str, keys: list[str], walk: OutputWalk) -> None:
    """The words of a mapping with such keys, in the mapping's own order."""
    walk.word(name)
    walk.word(f"keys {len(keys)}")
    for key in keys:
        walk.word(f"key {key}")
