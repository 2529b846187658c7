"""``python -m tests.heldout``: what other libraries test themselves with, asked of ours.

Google's statistical cases are controls of the auditor; the other suites ask the accountant, and run
where their library is installed (`make heldout` installs them all).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import time
import warnings
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from rich.progress import track

from tests.heldout.controls import Result, controls, examine, read_cases
from tests.heldout.peer_rows import DISAGREES, PeerRow, reasons_of, table_of

MOST_RUNS = 500_000
# suite: the module of its rows, and the library without which it does not run
SUITES = {
    "dp-accounting": ("dp_accounting_suite", "dp_accounting"),
    "values": ("published_values", "dp_accounting"),
    "jax-privacy": ("jax_privacy_suite", "jax_privacy"),
    "jax-privacy-runs": ("jax_privacy_runs", "jax_privacy"),
    "PLD_accounting": ("pld_accounting_suite", "PLD_accounting"),
}
GOOGLE = "google"


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
        return DISAGREES
    if result.shown:
        return "as it should"
    return "too few runs" if result.needed_runs else "no runs show it"


def rows_of(number: int) -> list[tuple[str, str, str, str]]:
    """Family, kind, verdict and words of the results of a case, which travel between processes."""
    return [
        (r.control.case["family"], r.control.kind, verdict(r), words(r)) for r in results_of(number)
    ]


def statistical_cases(jobs: int, every: bool) -> int:
    """Print a table of families and kinds, and what disagrees; return how many do."""
    numbers = range(len(read_cases()))
    with ProcessPoolExecutor(jobs) as pool:
        done = pool.map(rows_of, numbers)
        quiet = not sys.stderr.isatty()
        rows = [row for part in track(done, "cases", len(numbers), disable=quiet) for row in part]
    counts = Counter(row[:3] for row in rows)
    for (family, kind, said), count in sorted(counts.items()):
        print(f"{family:20} {kind:18} {said:20} {count:4}")
    for _, _, said, text in rows:
        if said == DISAGREES or (every and said != "as it should"):
            print(text)
    disagreeing = sum(row[2] == DISAGREES for row in rows)
    print(f"{len(rows):,} controls of {len(numbers)} cases, {disagreeing} disagree")
    return disagreeing


def peer_rows(suite: str) -> list[PeerRow]:
    """The rows of a suite; none, and a line that says so, where its library is not installed."""
    module, library = SUITES[suite]
    if importlib.util.find_spec(library) is None:
        print(f"{suite}: {library} is not installed (make heldout installs it)")
        return []
    rows, start = [], time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in importlib.import_module(f"tests.heldout.{module}").rows():
            rows.append(row)
            if sys.stderr.isatty():
                print(f"\r{suite}: {len(rows):,}", end="", file=sys.stderr)
    print(f"{suite}: {len(rows):,} cases in {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def main() -> None:
    """Print a table of the suites and the reasons; exit with 1 if something disagrees."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", choices=[[], GOOGLE, *SUITES],
                        help=f"some of {GOOGLE}, {', '.join(SUITES)}; all by default")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes for google")
    parser.add_argument("--all", action="store_true", help="list what could not be shown, too")
    chosen = parser.parse_args()
    suites = chosen.suites or [*SUITES, GOOGLE]
    rows = [row for suite in suites if suite != GOOGLE for row in peer_rows(suite)]
    if rows:
        print("\n".join([*table_of(rows), *reasons_of(rows)]), flush=True)
    disagreeing = sum(row.verdict == DISAGREES for row in rows)
    if GOOGLE in suites:
        disagreeing += statistical_cases(chosen.jobs, chosen.all)
    raise SystemExit(disagreeing > 0)


if __name__ == "__main__":
    main()
