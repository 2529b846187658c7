"""Run cases on any executor: the same seed gives the same rows, in any order of completion.

A case is one thing to audit, such as a mechanism; its row is the line of the report.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from accountant.errors import ParameterError
from audits.results.rows import Settings, no_progress
from audits.results.short_names import short_name
from audits.runner.cases import cases
from dp_attest.public_names import nearest_name

WAKE_SECONDS = 0.5  # how long a signal may wait until the waiting thread sees it
# For each command the module with its cases, where other processes look up a case by its name.
FAMILIES = {
    "run": "audits.runner.cases",
    "papers": "audits.papers.cases",
    "libraries": "audits.libraries",
    "zoo": "audits.zoo.scorecard",
}
Done = TypeVar("Done")  # a row, or a score
Row_co = TypeVar("Row_co", covariant=True)


class RunnableCase(Protocol[Row_co]):
    """A case: a subject, a kind, and how it becomes a row."""

    @property
    def subject(self) -> str:
        """The name of the subject, by which a worker elsewhere finds the case."""
        ...

    @property
    def kind(self) -> str:
        """The kind of the subject; cases of the kind "algorithm" begin first."""
        ...

    def run(self, settings: Settings) -> Row_co:
        """Audit the subject and return its row, the same for the same settings."""
        ...


class WorkerFailed(ParameterError):
    """A row that could not be computed: its subject, and the worker's error."""


def select_cases(names: Sequence[str], every: list[Any] | None = None) -> list[Any]:
    """The cases of the names; all without names.

    A name is a whole subject, or the name of a mechanism, which means its first instance, or else
    a part of the subjects that are meant.
    """
    hint = "" if every is not None else "; `dp-attest audit list` shows them all"
    every = cases() if every is None else every
    if not names:
        return every
    selected: list[Any] = []
    for name in names:
        if not name.strip():
            raise ParameterError("NAME", name, "(part of) the name of a subject")
        exact = [case for case in every if name in {case.subject, short_name(case.subject)}]
        first_instance = [case for case in every if name == case.subject.split("(")[0]][:1]
        named = exact or first_instance
        named = named or [case for case in every if name.lower() in case.subject.lower()]
        if not named:
            subject_names = sorted({case.subject.split("(")[0] for case in every})
            meant = nearest_name(name, subject_names)
            shown = f"such as {subject_names[0]!r}" if subject_names else "of what is installed"
            shown = shown if meant is None else f"did you mean {meant!r}?"
            raise ParameterError("NAME", name, f"(part of) the name of a subject, {shown}{hint}")
        selected += [case for case in named if case not in selected]
    return [case for case in every if case in selected]


def run_all(
    todo: Sequence[RunnableCase[Done]],
    settings: Settings,
    jobs: int,
    on_row: Callable[[Done], None],
    executor: Executor | None = None,
    family: str = "run",
) -> list[Done]:
    """Run the cases on ``jobs`` threads, or on an executor; return rows in the given order.

    ``on_row`` is called with each row as it completes.  An executor receives only names and
    numbers, and returns rows; it may be a pool of processes, or a cluster.
    """
    # Cases of algorithms begin first: they take seconds, the others milliseconds.
    order = sorted(todo, key=lambda case: case.kind != "algorithm")
    pool = ThreadPoolExecutor(max_workers=jobs) if executor is None else executor
    silent = dataclasses.replace(settings, tick=no_progress)
    futures: dict[Future[Done], str] = {}
    rows: dict[str, Done] = {}
    try:
        for case in order:
            if executor is None:
                futures[pool.submit(case.run, settings)] = case.subject
            else:
                futures[pool.submit(run_by_name, family, case.subject, silent)] = case.subject
        pending = set(futures)
        while pending:
            # A signal that another thread receives does not wake this one, so it wakes by itself.
            done, pending = wait(pending, WAKE_SECONDS, FIRST_COMPLETED)
            for future in done:
                subject = futures[future]
                row = _result(future, subject)
                on_row(row)
                rows[subject] = row
        return [rows[case.subject] for case in todo]
    except (KeyboardInterrupt, ParameterError):
        # Finished rows that are not yet reported are kept as well.
        for future, subject in futures.items():
            is_finished = future.done() and not future.cancelled() and future.exception() is None
            if subject not in rows and is_finished:
                on_row(future.result())
        raise
    finally:
        for future in futures:
            future.cancel()
        if executor is None:
            pool.shutdown(wait=False, cancel_futures=True)


def run_by_name(family: str, subject: str, settings: Settings) -> Any:
    """Run one case in the current process, found by its name."""
    every: list[RunnableCase[Any]] = importlib.import_module(FAMILIES[family]).cases()
    for case in every:
        if case.subject == subject:
            return case.run(settings)
    raise ParameterError("NAME", subject, "known to the worker: install the same packages there")


def _result(future: Future[Done], subject: str) -> Done:
    """The row; a worker's error is raised with the subject's name."""
    try:
        return future.result()
    except ParameterError:
        raise
    except Exception as error:
        shown = f"{type(error).__name__}: {error}"
        raise WorkerFailed(subject, shown, "audited without an error") from error
