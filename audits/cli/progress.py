"""The executor of a run, and its progress bar."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

from accountant.cli.progress import terminal_progress
from accountant.errors import ParameterError
from audits.runner.execution import RunnableCase

SCHEDULER_TIMEOUT = "5s"


@contextlib.contextmanager
def progress_bar(
    todo: Sequence[RunnableCase[Any]], ticking: bool
) -> Iterator[tuple[Callable[[Any], None], Callable[[str], None]]]:
    """A bar on stderr with the time left, if stderr is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from audits.runner.cases import LOSS_SAMPLES

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with terminal_progress(*columns) as bar:
        longest = sum(case.kind == "algorithm" for case in todo) * LOSS_SAMPLES if ticking else 0
        task = bar.add_task("auditing", total=len(todo) + longest)
        yield (lambda _: bar.advance(task)), (lambda _: bar.advance(task))


@contextlib.contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask cluster; None without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ParameterError("--dask", address, "used where `distributed` is installed") from None
    try:
        connect: Any = Client
        client = connect(address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        allowed = f"the address of a scheduler that answers ({type(error).__name__})"
        raise ParameterError("--dask", address, allowed) from None
    with client:
        yield client.get_executor()
