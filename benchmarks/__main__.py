"""``python -m benchmarks``: every bench, one after another, and the page of what they printed.

A bench that fails does not stop the others; the exit status is 1, and the last line names it.
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

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("bench_*.py"))
LIBRARIES = ("numpy", "scipy", "scikit-learn", "randomgen", "dp-accounting", "opendp",
             "multi-freq-ldpy", "prv-accountant", "autodp")  # fmt: skip
WITH_TABLES = {
    "bench_proofs",
    "bench_sampled_gaussians",
    "bench_sampling_schemes",
}  # of docs/accounting.md
HEAD = """# Benchmarks

What `make bench` printed. Every bench compares with a named peer, or with a limit that the machine
sets, in the same run: "2 x" means twice its time, or twice as much. The sizes are the defaults;
`--help` of a script names its options, and `--quick` only shows that it works.

"""


def processor() -> str:
    """Return the processor's model."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def commit() -> str:
    """Return the commit that is measured, and whether files differ from it."""

    def git(*words: str) -> str:
        found = subprocess.run(["git", *words], cwd=FOLDER, capture_output=True, text=True,
                               check=False)  # fmt: skip
        return found.stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def circumstances() -> str:
    """Return the machine, the versions, the commit and the load, before anything runs."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rows = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit(),
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "Python": platform.python_version(),
        "libraries": ", ".join(versions),
        "load at the start": ", ".join(f"{one:.1f}" for one in os.getloadavg())
        + " (the mean number of running processes in the last 1, 5 and 15 minutes)",
    }
    return "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in rows.items())])


def run(command: list[str]) -> tuple[int, str]:
    """Run a command, show what it prints as it comes, and return its status and its output."""
    said = []
    with subprocess.Popen(command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True) as one:
        for line in one.stdout or ():
            print(line, end="", flush=True)
            said.append(line)
    return one.returncode, "".join(said)


def main() -> int:
    """Run the benches, and write their page where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BENCH", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the scripts work")
    parser.add_argument("--write", metavar="FILE", help="keep the output in this page")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    words = ["--quick"] if given.quick else []
    tables = ["--write"] if given.write and not given.quick else []  # also those of other pages
    page, failed = [HEAD + circumstances()], []
    for name in given.names or NAMES:
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        status, said = run([sys.executable, "-m", f"benchmarks.{name}", *words,
                            *(tables if name in WITH_TABLES else [])])  # fmt: skip
        if status:
            failed.append(name)
            said += f"failed with exit status {status}\n"
        command = " ".join([".venv/bin/python -m", f"benchmarks.{name}", *words])
        page += [f"## {name}", f"```\n$ {command}\n{said}```",
                 f"Took {time.perf_counter() - start:.0f} s."]  # fmt: skip
    if given.write:
        write_atomically(Path(given.write), "\n\n".join(page) + "\n")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
