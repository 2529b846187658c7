"""``python -m tests.heldout``: all of Google's cases as controls, and each that disagrees."""

from __future__ import annotations

import argparse
import os
import sys
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from rich.progress import track

from tests.heldout.controls import Result, controls, examine, read_cases

MOST_RUNS = 500_000


def results_of(number: int, most_runs: int = MOST_RUNS) -> list[Result]:
    """The results of all controls of one case, by its number."""
    case = read_cases()[number]
    return [
        examine(control, most_runs, zlib.crc32(control.name.encode())) for control in controls(case)
    ]


def words(result: Result) -> str:
    """A result in words."""
    needed = f"{result.needed_runs:,} would show it" if result.needed_runs else verdict(result)
    return f"{result.control.name}: {result.outcome.name} in {result.runs:,} runs, {needed}"


def verdict(result: Result) -> str:
    """How a result agrees with the case, in a few words."""
    if not result.agrees:
        return "DISAGREES"
    if result.shown:
        return "as it should"
    return "too few runs" if result.needed_runs else "no runs show it"


def rows_of(number: int) -> list[tuple[str, str, str, str]]:
    """Family, kind, verdict and words of the results of a case, which travel between processes."""
    return [
        (r.control.case["family"], r.control.kind, verdict(r), words(r)) for r in results_of(number)
    ]


def main() -> None:
    """Print a table of families and kinds, and what disagrees or could not be shown."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--all", action="store_true", help="list what could not be shown, too")
    chosen = parser.parse_args()
    numbers = range(len(read_cases()))
    with ProcessPoolExecutor(chosen.jobs) as pool:
        done = pool.map(rows_of, numbers)
        quiet = not sys.stderr.isatty()
        rows = [row for part in track(done, "cases", len(numbers), disable=quiet) for row in part]
    counts = Counter(row[:3] for row in rows)
    for (family, kind, said), count in sorted(counts.items()):
        print(f"{family:20} {kind:18} {said:20} {count:4}")
    for _, _, said, text in rows:
        if said == "DISAGREES" or (chosen.all and said != "as it should"):
            print(text)
    disagreeing = sum(row[2] == "DISAGREES" for row in rows)
    print(f"{len(rows):,} controls of {len(numbers)} cases, {disagreeing} disagree")
    raise SystemExit(disagreeing > 0)


if __name__ == "__main__":
    main()
