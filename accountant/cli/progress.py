"""A progress bar on stderr, which only a terminal sees."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


@contextlib.contextmanager
def terminal_progress(*columns: ProgressColumn) -> Iterator[Progress]:
    """Rich's progress bar; where stderr is no terminal it takes steps and writes nothing."""
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    bar = Progress(*columns, console=screen, transient=True)
    # a bar that is started and disabled writes an empty line before rich 14.3
    with bar if screen.is_terminal else contextlib.nullcontext():
        yield bar


@contextlib.contextmanager
def progress_bar(steps: int, show_remaining_time: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar of a number of steps; what it yields is called after each, or with a number."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    time_columns = (TextColumn("left"), TimeRemainingColumn()) if show_remaining_time else ()
    with terminal_progress(TextColumn("computing"), BarColumn(), *time_columns) as bar:
        task = bar.add_task("computing", total=steps)
        yield lambda steps=1: bar.advance(task, steps)


@contextlib.contextmanager
def waiting(task: str) -> Iterator[None]:
    """Show the name of a task and its seconds so far, while its end is not known."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with terminal_progress(SpinnerColumn(), TextColumn(task), TimeElapsedColumn()) as bar:
        bar.add_task(task, total=None)
        yield
