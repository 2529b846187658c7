"""``python -m benchmarks``: every bench, one after another, their records and the page of them.

A bench that fails does not stop the others; the exit status is 1, and the last line names it.
Only the records of the benches that were asked for are replaced.  A record says the date, the
commit, the machine and the load of its own run; the page is made from all records.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from accountant.files import write_atomically
from benchmarks.page import FAILED, RECORDS, TABLES, page_of
from mechanisms.base.marked_table import write_between

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("bench_*.py"))
LIBRARIES = ("numpy", "scipy", "scikit-learn", "randomgen", "dp-accounting", "opendp",
             "diffprivlib", "multi-freq-ldpy", "prv-accountant", "autodp")  # fmt: skip
# their peers have a folder of their own, for diffprivlib asks for an older scikit-learn
WITH_PEERS = {"bench_estimators", "bench_frames", "bench_quantiles", "bench_top_k"}
PEERS = FOLDER.parent / ".venv-bench"


def processor() -> str:
    """Return the processor's model."""
    try:
        model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        model = None
    return model[1].strip() if model else platform.processor() or platform.machine()


def commit() -> str:
    """Return the commit that is measured, and whether files other than pages differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=FOLDER, capture_output=True, text=True,
                              check=False)  # fmt: skip
        return done.stdout.strip()

    status = git("status", "--porcelain", "--untracked-files=no", "--", "..", ":(exclude,top)docs")
    changed = " with changes" if status else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def circumstances() -> str:
    """Return the date, the commit, the machine, the versions and the load before a bench runs."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{mean:.1f}" for mean in os.getloadavg())
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
        "load": f"{load} (processes that ran in the last 1, 5 and 15 minutes, before the start)",
    }
    return "\n".join(f"{word}: {fact}" for word, fact in facts.items())


def run(command: list[str]) -> tuple[int, str]:
    """Run a command, show what it prints as it comes, and return its status and its output."""
    said = []
    with subprocess.Popen(command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout or ():
            print(line, end="", flush=True)
            said.append(line)
    return child.returncode, "".join(said)


def record(name: str, words: list[str]) -> tuple[int, str]:
    """Run a bench, and return its exit status and its record."""
    before, start = circumstances(), time.perf_counter()
    status, said = run([sys.executable, "-m", f"benchmarks.{name}", *words])
    if status:
        said += f"{FAILED} {status}\n"
    folder = PEERS.name if Path(sys.prefix) == PEERS else ".venv"
    command = " ".join([f"{folder}/bin/python -m", f"benchmarks.{name}", *words])
    took = f"took {time.perf_counter() - start:.0f} s"
    return status, f"{before}\n\n$ {command}\n{said}\n{took}\n"


def records_in(docs: Path) -> dict[str, str]:
    """Return the records of the benches in their order."""
    paths = {name: docs / RECORDS / f"{name}.txt" for name in NAMES}
    return {name: path.read_text("utf-8") for name, path in paths.items() if path.exists()}


def write(docs: Path, texts: dict[str, str]) -> None:
    """Write some records, the page of all, and the tables of other pages."""
    (docs / RECORDS).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_atomically(docs / RECORDS / f"{name}.txt", text)
    records = records_in(docs)
    write_atomically(docs / "benchmarks.md", page_of(records))
    for name, table in TABLES.items():
        if name in records and (docs / table.page).exists():
            marks = (f"<!-- written: {name} -->\n", "<!-- end -->")
            write_between(str(docs / table.page), marks, table.made(name, records[name]))


def main() -> int:
    """Run the benches, and write their page where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BENCH", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the scripts work")
    parser.add_argument(
        "--write", metavar="DOCS", help="keep their records and page in this folder"
    )
    parser.add_argument("--page", action="store_true", help="run none: make the pages again")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    if given.page:
        write(Path(given.write or FOLDER.parent / "docs"), {})
        return 0
    words = ["--quick"] if given.quick else []
    failed = []
    for name in given.names or NAMES:
        if name in WITH_PEERS and PEERS.exists() and Path(sys.prefix) != PEERS:
            # it says the versions of its own folder
            docs = ["--write", given.write] if given.write else []
            program = [str(PEERS / "bin" / "python"), "-m", "benchmarks", name, *words, *docs]
            failed += [name] * (
                subprocess.run(program, cwd=FOLDER.parent, check=False).returncode > 0
            )
            continue
        print(f"== {name}", flush=True)
        status, text = record(name, words)
        if status:
            failed.append(name)
        if given.write:  # after each bench: an interrupted run keeps what it measured
            write(Path(given.write), {name: text})
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
