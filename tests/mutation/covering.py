"""Which tests run a line, and how long each takes: measured in one run of the quick suite."""

import os
import subprocess
import sys
from collections import defaultdict

from tests.selection.__main__ import LIST
from tests.selection.line_coverage import read_lines

# the tests of all rooms, the laws, the references, and the examples of docstrings
TESTS = (
    "tests/accountant", "tests/mechanisms", "tests/algorithms", "tests/audits", "tests/laws",
    "tests/guarantees", "tests/references", "tests/docs/test_docstrings.py",
    "tests/test_packages.py",
)  # fmt: skip
# pages and command lines lean on the rooms and do not judge them
LEFT_OUT = (
    "tests/accountant/cli", "tests/accountant/reports", "tests/audits/formats",
    "tests/audits/report", "tests/audits/zoo", "tests/references/arb",
)  # fmt: skip


def measure(tree, folder, workers):
    """Run the tests in a tree under `tests.selection.line_coverage`, which writes into a folder."""
    left_out = [f"--ignore={name}" for name in LEFT_OUT]
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "tests.selection.line_coverage",
        "-p", "no:cacheprovider", "-n", str(workers), "--dist", "loadfile", *left_out, *TESTS,
    ]  # fmt: skip
    environment = {
        **os.environ, "LINE_COVERAGE": str(folder / "lines"), "PYTHONPATH": str(tree),
        "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    # A test that fails without a mutant is reported here, and judges none.
    subprocess.run(command, cwd=tree, env=environment, check=False)


class LinesOfTests:
    """The passing tests of a measured folder, and the lines that each runs.

    Cases that run in `make thorough` alone are left out: where a mutant is tried, they are not run.
    """

    def __init__(self, folder):
        slow = set(LIST.read_text().splitlines())
        measured = read_lines(sorted(folder.glob("lines.*.json")))
        tests = {name: measured[name] for name in measured if name not in slow}
        self.seconds = {name: seconds for name, (seconds, _, _) in tests.items()}
        self.starting_processes = {name for name, (_, has_children, _) in tests.items()
                                   if has_children}  # fmt: skip
        self.tests_by_line = defaultdict(lambda: defaultdict(set))
        for name, (_, _, lines) in tests.items():
            for line in lines:
                path, _, number = line.rpartition(":")
                self.tests_by_line[path][int(number)].add(name)

    def tests_of(self, path, lines):
        """Return the seconds of each test that runs one of the lines.

        Lines that run at import are None: no test runs them, and every test of the same room and
        every test that runs any line of the file may notice a change of them.  Where no test runs
        the lines, child processes may do so, which is not seen: then these are the tests of the
        same room that start processes.
        """
        place = f"tests/{path.rpartition('/')[0]}/"
        by_line = self.tests_by_line[path]
        names = set().union(
            *(by_line[line] for line in list(by_line) if lines is None or line in lines)
        )
        if lines is None:
            names |= {name for name in self.seconds if name.startswith(place)}
        if not names:
            names = {name for name in self.starting_processes if name.startswith(place)}
        return {name: self.seconds[name] for name in names}


def in_order(seconds, budget):
    """The tests to try, within a budget of processor time.

    First one case of every test, then the second cases, each round quickest first: cases of one
    test are much alike.
    """
    rounds, order = {}, []
    for test in sorted(seconds, key=seconds.get):
        function = test.partition("[")[0]
        rounds[function] = rounds.get(function, -1) + 1
        order.append((rounds[function], seconds[test], test))
    chosen = {}
    for _, took, test in sorted(order):
        if not chosen or sum(chosen.values()) + took <= budget:
            chosen[test] = took
    return chosen
