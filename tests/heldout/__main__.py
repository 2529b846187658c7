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
    needed = f", {result.needed_runs:,} would show it" if result.needed_runs else ""
    return f"{result.control.name}: {result.outcome.name} in {result.runs:,} runs{needed}"


def rows_of(number: int) -> list[tuple[str, str, bool, bool, bool, str]]:
    """Plain facts of the results of a case, which travel between processes."""
    return [
        (r.control.case["family"], r.control.kind, r.control.is_true, r.agrees, r.shown, words(r))
        for r in results_of(number)
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
    counts: Counter[tuple[str, str, str]] = Counter()
    for family, kind, is_true, agrees, is_shown, _ in rows:
        said = "as it should" if is_shown else "too few runs" if agrees else "DISAGREES"
        counts[family, f"{kind} ({'true' if is_true else 'false'})", said] += 1
    for (family, kind, said), count in sorted(counts.items()):
        print(f"{family:20} {kind:28} {said:14} {count:4}")
    for _, _, _, agrees, is_shown, text in rows:
        if not agrees or (chosen.all and not is_shown):
            print(f"{'' if agrees else 'DISAGREES: '}{text}")
    print(f"{len(rows)} controls of {len(numbers)} cases, "
          f"{sum(not row[3] for row in rows)} disagree")  # fmt: skip
    raise SystemExit(any(not row[3] for row in rows))


if __name__ == "__main__":
    main()
