"""Releases of OpenDP and diffprivlib that answer the questions of `bench_frames`."""

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

CANDIDATES = 1001  # of a quantile of OpenDP, between the bounds
BINS = 20


class Case(NamedTuple):
    """A question: its kind, the data, the column, and what it is by or how many."""

    kind: str
    data: str
    column: str = ""
    by: str = ""
    shares: tuple[float, ...] = ()

    def __str__(self) -> str:
        words = self.kind + (f" of {self.column}" if self.column else "")
        return words + (f" by {self.by}" if self.by else "")


class Peer(NamedTuple):
    """How to make a release, and the kinds and relations that it is for."""

    made: Callable[..., Any]
    relations: Callable[[str], tuple[str, ...]]


def opendp(case: Case, frame: pl.DataFrame, bounds: Any, fresh: bool) -> Any:
    """Return a release of OpenDP's context on polars; built anew each time if ``fresh``."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    lazy = prepared(case, frame, bounds).lazy()
    asked = _asked_of_opendp(case, frame, bounds)
    if asked is None:
        return None

    def context() -> Any:
        return dp.Context.compositor(
            data=lazy, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(1.0),
            split_evenly_over=1, margins=[dp.polars.Margin(max_length=2 * len(frame))],
        )  # fmt: skip

    if fresh:
        return lambda: _read(case, asked(context().query()).release().collect())
    measured = asked(context().query()).resolve()
    return lambda: _read(case, measured(lazy).collect())


def prepared(case: Case, frame: pl.DataFrame, bounds: Any) -> pl.DataFrame:
    """Return the frame with a column of bins for a histogram."""
    if case.kind != "histogram":
        return frame
    low, high = bounds[case.column]
    place = ((pl.col(case.column) - low) / (high - low) * BINS).floor().clip(0, BINS - 1)
    return frame.with_columns(place.cast(pl.Int64).alias("bin"))


def _asked_of_opendp(case: Case, frame: pl.DataFrame, bounds: Any) -> Any:
    import opendp.prelude as dp

    column = pl.col(case.column) if case.column else None
    ends = tuple(map(float, bounds.get(case.column, (0, 1))))
    if case.kind == "count" and not case.by:
        return lambda query: query.select(dp.len())
    if case.kind in {"median", "quartiles", "deciles"}:
        points = np.linspace(*ends, CANDIDATES).tolist()
        each = [column.dp.quantile(q, points).alias(f"{q:g}") for q in case.shares]
        return lambda query: query.select(*each)
    if case.kind in {"count", "histogram", "top 10"}:
        key = {"count": case.by, "histogram": "bin", "top 10": case.column}[case.kind]
        kinds = pl.DataFrame({"bin": range(BINS)}) if key == "bin" else frame.select(key).unique()
        keys = kinds.sort(key).lazy()
        return lambda query: query.group_by(key).agg(dp.len()).with_keys(keys)
    total = column.dp.sum(ends)
    if case.by:
        keys = frame.select(case.by).unique().sort(case.by).lazy()
        return lambda query: query.group_by(case.by).agg(total, dp.len()).with_keys(keys)
    whole = {"sum": total, "mean": column.dp.mean(ends)}.get(case.kind)
    return None if whole is None else lambda query: query.select(whole)


def _read(case: Case, found: pl.DataFrame) -> Any:
    """Return the numbers of an answer of OpenDP."""
    if case.kind in {"median", "quartiles", "deciles"}:
        return np.array(found.row(0))
    if case.kind == "top 10":
        return np.sort(found["len"].to_numpy())[::-1][:10]
    if case.kind == "histogram":
        return found.sort("bin")["len"].to_numpy()
    if case.by:
        found = found.sort(case.by)
        count = np.maximum(found["len"].to_numpy(), 1)
        return count if case.kind == "count" else found[case.column].to_numpy() / count
    return found.item(0, 0)


def diffprivlib(case: Case, frame: pl.DataFrame, bounds: Any, fresh: bool) -> Any:
    """Return a release of diffprivlib's tools; None for what it does not have."""
    from diffprivlib import tools

    del fresh
    if case.by or not case.column:
        return None
    if case.kind == "top 10":
        kinds = pl.Enum(frame[case.column].unique().sort().to_list())
        size = len(kinds.categories)
        bins = {"bins": size, "range": (-0.5, size - 0.5)}

        def counted() -> Any:  # it wants numbers
            return tools.histogram(frame[case.column].cast(kinds).to_physical().to_numpy(), **bins)

        return lambda: np.sort(counted()[0])[::-1][:10]
    numbers, ends = frame[case.column].to_numpy(), bounds[case.column]
    if case.kind == "histogram":
        return lambda: tools.histogram(numbers, 1.0, bins=BINS, range=ends)[0]
    if case.shares:
        asked = list(case.shares)
        return lambda: tools.quantile(numbers, asked, epsilon=1.0, bounds=ends)
    made = {"sum": tools.sum, "mean": tools.mean, "variance": tools.var}.get(case.kind)
    return None if made is None else lambda: made(numbers, epsilon=1.0, bounds=ends)


def _of_diffprivlib(kind: str) -> tuple[str, ...]:
    """Its counts are for a row more or less, its ranks for either, the rest for an exchange."""
    if kind in {"histogram", "top 10"}:
        return ("add-remove",)
    if kind in {"median", "quartiles", "deciles"}:
        return ("add-remove", "replace-one")
    return ("replace-one",)


def installed() -> dict[str, Peer]:
    """Return the peers that are here."""
    known = {
        "opendp": Peer(opendp, lambda kind: ("add-remove",)),
        "diffprivlib": Peer(diffprivlib, _of_diffprivlib),
    }
    return {name: peer for name, peer in known.items() if importlib.util.find_spec(name)}
