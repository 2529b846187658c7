"""Data frames that are not in memory as a whole: partitions on workers, or lazy frames."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Any, NoReturn

from accountant.errors import ParameterError
from accountant.ledger.frame_rows import FrameFacts, type_word


def is_partitioned(data: Any) -> bool:
    """Return whether data are a Dask data frame; Dask is not imported."""
    library = sys.modules.get("dask.dataframe")
    return library is not None and isinstance(data, library.DataFrame)


def is_lazy(data: Any) -> bool:
    """Return whether data are a lazy frame of polars, which is read when it is asked."""
    library = sys.modules.get("polars")
    return library is not None and isinstance(data, library.LazyFrame)


class LazyRows:
    """A lazy frame of polars: a query gets it, and reads portions of it.

    The number of rows is counted at once.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        import polars as pl

        types = frame.collect_schema()
        if not types:
            raise ParameterError(argument, [], "a frame with columns")
        self._frame = frame
        type_words = {name: type_word(kind) for name, kind in types.items()}
        self.facts = FrameFacts("polars", MappingProxyType(type_words))
        self.shape: tuple[int, int] = (frame.select(pl.len()).collect().item(), len(types))

    def fresh(self) -> Any:
        """Return the frame for one query."""
        return self._frame.clone()

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a lazy frame are read in portions"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class FramePartitions:
    """A Dask data frame: its rows, and the types of its columns, are looked at by workers.

    The number of rows is counted at once, and all partitions must have the types of the frame.  A
    query gets a Dask frame of its own, and reduces it on the workers.
    """

    def __init__(self, argument: str, frame: Any) -> None:
        names = list(frame.columns)
        if not names or len(set(names)) < len(names) or not all(type(n) is str for n in names):
            raise ParameterError(argument, names, "a frame whose columns have distinct names")
        self._frame = frame.copy()  # assigned columns change a frame in place
        type_words = {name: type_word(kind) for name, kind in zip(names, frame.dtypes, strict=True)}
        # answers are small, so they are plain frames of pandas
        self.facts = FrameFacts("pandas", MappingProxyType(type_words))
        self.shape: tuple[int, int] = (self._counted(argument), len(names))

    def fresh(self) -> Any:
        """Return the frame for one query."""
        return self._frame.copy()

    def _counted(self, argument: str) -> int:
        """Return the number of rows; refuse partitions that do not have the types of the frame."""
        import dask

        kinds = [str(kind) for kind in self._frame.dtypes]
        looked = [dask.delayed(Looked(kinds))(piece) for piece in self._frame.to_delayed()]
        lengths: list[int] = list(dask.compute(*looked))
        if wrong := [partition_index for partition_index, rows in enumerate(lengths) if rows < 0]:
            allowed = "of the types that the frame declares, in all: use .astype(...) on the frame"
            raise ParameterError(argument, f"partition {wrong[0]}", allowed)
        return sum(lengths)

    def __getitem__(self, who: Any) -> NoReturn:
        allowed = "released at once: rows of a Dask frame are not brought here"
        raise ParameterError("mechanism", "a sample, or a part, of the rows", allowed)


class Looked:
    """Counts the rows of a partition on a worker: -1 if its types are not the declared ones."""

    def __init__(self, kinds: list[str]) -> None:
        self._kinds = kinds

    def __call__(self, partition: Any) -> int:
        """Return the number of rows."""
        same = [str(kind) for kind in partition.dtypes] == self._kinds
        return len(partition) if same else -1
