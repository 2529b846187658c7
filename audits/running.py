"""Running cases over threads: same seed, same rows, whatever the number of jobs."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from accountant.errors import ParameterError
from audits.cases import Case, Row, Settings, cases


def chosen(names: list[str]) -> list[Case]:
    """Cases whose subject has one of the names in it; all without names."""
    every = cases()
    if not names:
        return every
    found: list[Case] = []
    for name in names:
        if not name.strip():
            raise ParameterError("NAME", name, "(part of) the name of a subject")
        named = [case for case in every if name.lower() in case.subject.lower()]
        if not named:
            words = sorted({case.subject.split("(")[0] for case in every})
            near = difflib.get_close_matches(name, words, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ParameterError("NAME", name, f"(part of) one of {', '.join(words)}{hint}")
        found += [case for case in named if case not in found]
    return [case for case in every if case in found]


def run_all(
    todo: list[Case], settings: Settings, jobs: int, done: Callable[[Case], None]
) -> list[Row]:
    """Run the cases on ``jobs`` threads and return their rows in the given order."""
    pool = ThreadPoolExecutor(max_workers=jobs)

    def one(case: Case) -> Row:
        row = case.run(settings)
        done(case)
        return row

    try:
        # the longest first: algorithms take seconds, the others milliseconds
        order = sorted(todo, key=lambda case: case.kind != "algorithm")
        futures = {case.subject: pool.submit(one, case) for case in order}
        return [futures[case.subject].result() for case in todo]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
