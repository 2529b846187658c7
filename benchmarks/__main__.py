"""``python -m benchmarks``: every bench, one after another, and the page of what they printed.

A bench that fails does not stop the others; the exit status is 1, and the last line names it.
A section of the page carries the date, the commit, the machine and the load of its own run.  Only
the sections of the benches that were asked for are replaced; what stands outside of the marks of a
section is written by hand and stays.
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
             "diffprivlib", "multi-freq-ldpy", "prv-accountant", "autodp")  # fmt: skip
WITH_TABLES = {
    "bench_proofs",
    "bench_sampled_gaussians",
    "bench_sampling_schemes",
}  # of docs/accounting.md
# their peers have a folder of their own, for diffprivlib asks for an older scikit-learn
WITH_PEERS = {"bench_quantiles", "bench_top_k"}
PEERS = FOLDER.parent / ".venv-bench"
HEAD = """# Benchmarks

What `make bench` printed. Every bench compares with a named peer, or with a limit that the machine
sets, in the same run: "2 x" means twice its time, or twice as much. The sizes are the defaults;
`--help` of a script names its options, and `--quick` only shows that it works. Each section says
when, at which commit and beside what load it was measured; `make bench ARGS=bench_start` measures
one section again.
"""


def marks(name: str) -> tuple[str, str]:
    """Return the comments between which a bench writes its section."""
    return f"<!-- bench: {name} -->", f"<!-- end of {name} -->"


def processor() -> str:
    """Return the processor's model."""
    try:
        model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        model = None
    return model[1].strip() if model else platform.processor() or platform.machine()


def commit() -> str:
    """Return the commit that is measured, and whether files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=FOLDER, capture_output=True, text=True,
                              check=False)  # fmt: skip
        return done.stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def circumstances() -> str:
    """Return the date, the commit, the machine, the load and the versions before a bench runs."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{mean:.1f}" for mean in os.getloadavg())
    rows = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
        "load": f"{load} (processes that ran in the last 1, 5 and 15 minutes, before the start)",
    }
    return "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in rows.items())])


def run(command: list[str]) -> tuple[int, str]:
    """Run a command, show what it prints as it comes, and return its status and its output."""
    said = []
    with subprocess.Popen(command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout or ():
            print(line, end="", flush=True)
            said.append(line)
    return child.returncode, "".join(said)


def section(name: str, words: list[str], tables: list[str]) -> tuple[int, str]:
    """Run a bench, and return its exit status and its section of the page."""
    before, start = circumstances(), time.perf_counter()
    status, said = run([sys.executable, "-m", f"benchmarks.{name}", *words, *tables])
    if status:
        said += f"failed with exit status {status}\n"
    folder = PEERS.name if Path(sys.prefix) == PEERS else ".venv"
    command = " ".join([f"{folder}/bin/python -m", f"benchmarks.{name}", *words])
    first, last = marks(name)
    body = [f"## {name}", before, f"```\n$ {command}\n{said}```",
            f"Took {time.perf_counter() - start:.0f} s."]  # fmt: skip
    return status, "\n\n".join([first, *body, last])


def with_section(page: str, name: str, text: str) -> str:
    """Return the page with the section of a bench replaced, or added in the order of names."""
    first, last = marks(name)
    if first in page:
        before, _, rest = page.partition(first)
        return before + text + rest.partition(last)[2]
    later = [marks(other)[0] for other in NAMES if other > name and marks(other)[0] in page]
    place = page.index(later[0]) if later else len(page)
    return f"{page[:place].rstrip()}\n\n{text}\n\n{page[place:]}".rstrip() + "\n"


def main() -> int:
    """Run the benches, and write their page where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BENCH", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the scripts work")
    parser.add_argument("--write", metavar="FILE", help="replace their sections in this page")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    words = ["--quick"] if given.quick else []
    failed = []
    for name in given.names or NAMES:
        if name in WITH_PEERS and PEERS.exists() and Path(sys.prefix) != PEERS:
            # it says the versions of its own folder
            write = ["--write", given.write] if given.write else []
            program = [str(PEERS / "bin" / "python"), "-m", "benchmarks", name, *words, *write]
            failed += [name] * (
                subprocess.run(program, cwd=FOLDER.parent, check=False).returncode > 0
            )
            continue
        print(f"== {name}", flush=True)
        # a bench also writes its tables of other pages
        tables = ["--write"] if given.write and not given.quick and name in WITH_TABLES else []
        status, text = section(name, words, tables)
        if status:
            failed.append(name)
        if given.write:  # after each bench: an interrupted run keeps what it measured
            path = Path(given.write)
            page = path.read_text(encoding="utf-8") if path.exists() else HEAD
            write_atomically(path, with_section(page, name, text))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
