"""Running cases on any executor: same seed, same rows, whatever it is and whoever ends first."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed

from accountant.errors import ParameterError
from audits.cases import cases
from audits.rows import Case, Row, Settings, quiet

# where other processes find a case again by its name
FAMILIES = {
    "run": "audits.cases", "papers": "audits.papers", "libraries": "audits.libraries",
}  # fmt: skip


def chosen(names: Sequence[str], every: list[Case] | None = None) -> list[Case]:
    """Cases whose subject is one of the names, or has it in it; all without names."""
    every = cases() if every is None else every
    if not names:
        return every
    found: list[Case] = []
    for name in names:
        if not name.strip():
            raise ParameterError("NAME", name, "(part of) the name of a subject")
        named = [case for case in every if name == case.subject] or [
            case for case in every if name.lower() in case.subject.lower()
        ]
        if not named:
            words = sorted({case.subject.split("(")[0] for case in every})
            near = difflib.get_close_matches(name, words, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ParameterError("NAME", name, f"(part of) one of {', '.join(words)}{hint}")
        found += [case for case in named if case not in found]
    return [case for case in every if case in found]


def run_all(
    todo: list[Case],
    settings: Settings,
    jobs: int,
    done: Callable[[Row], None],
    executor: Executor | None = None,
    family: str = "run",
) -> list[Row]:
    """Run the cases on ``jobs`` threads, or on an executor; return rows in the given order.

    ``done`` is told of each row as it comes.  To an executor only names and numbers travel, and
    rows travel back; it may be a pool of processes, or a cluster.
    """
    # the longest first: algorithms take seconds, the others milliseconds
    order = sorted(todo, key=lambda case: case.kind != "algorithm")
    pool = ThreadPoolExecutor(max_workers=jobs) if executor is None else executor
    silent = dataclasses.replace(settings, tick=quiet)
    try:
        if executor is None:
            futures = {pool.submit(case.run, settings): case.subject for case in order}
        else:
            futures = {pool.submit(by_name, family, case.subject, silent): case.subject
                       for case in order}  # fmt: skip
        rows = {}
        for future in as_completed(futures):
            row = rows[futures[future]] = future.result()
            done(row)
        return [rows[case.subject] for case in todo]
    finally:
        for future in futures:
            future.cancel()
        if executor is None:
            pool.shutdown(wait=False, cancel_futures=True)


def by_name(family: str, subject: str, settings: Settings) -> Row:
    """Run one case in whatever process this is."""
    every: list[Case] = importlib.import_module(FAMILIES[family]).cases()
    return next(case for case in every if case.subject == subject).run(settings)
