"""Tests in forked copies of an interpreter that has the libraries but nothing of the project.

What is tested lies in a copy of the tree, never in the working tree: a mutant is written there,
so that processes which the tests start see it too.
"""

import importlib
import inspect
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mutants"
TIMED = re.compile(r"standard_seconds|process_time|perf_counter|monotonic|time\.time")
LIBRARIES = (
    "dp_accounting.pld.privacy_loss_distribution", "hypothesis.strategies", "mpmath",
    "numpy", "pytest", "randomgen", "scipy.fft", "scipy.integrate", "scipy.optimize",
    "scipy.special", "scipy.stats", "sklearn.linear_model", "statsmodels.stats.proportion",
    "typer.testing", "hypothesis.extra.numpy", "tomlkit", "rich.console", "jinja2",
)  # fmt: skip
QUIETLY = (
    "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore:Module already imported",
)  # fmt: skip
COPIED = (
    "accountant", "algorithms", "audits", "benchmarks", "docs", "dp_attest", "examples",
    "experiments",
    "mechanisms", "tests", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE",
    "requirements.txt", "Makefile",
)  # fmt: skip
WRITTEN_AFTERWARDS = {"tests/mutation/judged.toml", "docs/testing.md"}
MEMORY = 8 * 2**30  # bytes
PATIENCE = 20.0, 10.0  # seconds of processor time a test may take, and times what it took


def import_libraries(names=LIBRARIES):
    """Import what the tests need beside the project; one thread each, as forks need it."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"without {name}", file=sys.stderr)


def copied_tree(tree=CACHE / "tree", names=COPIED):
    """A copy of the working tree; what is the same stays, with its bytecode."""
    wanted = {file.relative_to(ROOT) for name in names for file in _files(ROOT / name)}
    for old in [file for file in _files(tree) if file.relative_to(tree) not in wanted]:
        old.unlink()
    for name in wanted:
        copy = tree / name
        if not copy.exists() or copy.read_bytes() != (ROOT / name).read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy)
    return tree


def contents_mark(tree):
    """What stands for all that a tree contains but the files that say how mutants are judged."""
    mark = sha256()
    for file in sorted(_files(tree)):
        if str(file.relative_to(tree)) in WRITTEN_AFTERWARDS:
            continue
        mark.update(f"{file.relative_to(tree)}\n".encode() + file.read_bytes())
    return mark.hexdigest()[:16]


def _files(given):
    """A file, or the files of a folder without bytecode."""
    found = [given] if given.is_file() else given.rglob("*")
    return [file for file in found if file.is_file() and "__pycache__" not in file.parts]


class Watch:
    """A pytest plugin that runs chosen tests in order, and names the first failure.

    Tests of time are left out: they judge the machine.
    """

    def __init__(self, report, chosen):
        self.report, self.chosen, self.failed = report, chosen, {}

    def pytest_collection_modifyitems(self, items):
        """Take the chosen tests in order, and leave out those of time."""
        by_name = {item.nodeid: item for item in items if not _is_timed(item)}
        items[:] = [by_name[name] for name in self.chosen if name in by_name]

    def pytest_runtest_logstart(self, nodeid):
        """Limit the processor time of a test: where it runs out, the report says so already."""
        allowed = PATIENCE[0] + PATIENCE[1] * self.chosen[nodeid]
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + allowed), -1))
        self.report.write_text(json.dumps({"failed": {nodeid: "its time ran out"}}))

    def pytest_runtest_logreport(self, report):
        """Keep the failure of a test."""
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)[-600:]

    def pytest_collectreport(self, report):
        """A file that cannot be imported falls."""
        if report.failed:
            self.failed[report.nodeid or "collection"] = str(report.longrepr)[-600:]

    def write(self):
        """Leave the report where the parent finds it."""
        self.report.write_text(json.dumps({"failed": self.failed}))


def _is_timed(item):
    try:
        return bool(TIMED.search(inspect.getsource(item.function)))
    except (AttributeError, OSError, TypeError):
        return False


def start(tree, arguments, watch):
    """Run pytest in a fork on a tree; the process id."""
    watch.report.unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 70  # of a runner that failed
    try:
        _become_a_test_run(tree, watch.report.with_suffix(".log"))
        # the bytecode of a mutant must not outlive it
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        import pytest

        status = int(pytest.main([*QUIETLY, *arguments], [watch]))
        watch.write()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _become_a_test_run(tree, log):
    """Leave the parent's session, output and modules; see the tree and not the working tree."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(tree)
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in {"", str(ROOT)})]
    os.environ["PYTHONPATH"] = str(tree)
    importlib.invalidate_caches()


def wait(child, seconds):
    """The exit status of a run, or None if its time ran out; nothing of it is left behind."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                child = None
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return None
    finally:
        if child:  # also where this process is interrupted
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
