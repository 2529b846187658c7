"""Which tests run a line, and how long each takes: measured once, file by file."""

import hashlib
import json
import sys

from tests.mutation.running import CACHE, ROOT, Watch, start, wait

# the tests of all rooms, the laws, the references, and the examples of docstrings
TESTS = (
    "tests/accountant", "tests/mechanisms", "tests/algorithms", "tests/audits", "tests/laws",
    "tests/guarantees", "tests/references", "tests/docs/test_docstrings.py",
    "tests/test_packages.py",
)  # fmt: skip
# pages and command lines lean on the rooms and do not judge them
LEFT_OUT = (
    "tests/accountant/cli", "tests/accountant/reports", "tests/audits/cli", "tests/audits/report",
    "tests/audits/zoo", "tests/references/arb",
)  # fmt: skip
HANG = 1800.0  # seconds that a file of tests may take


def files_of_tests():
    """The files of tests that may judge a mutant."""
    found = []
    for given in TESTS:
        path = ROOT / given
        files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        found += [str(file.relative_to(ROOT)) for file in files]
    return [name for name in found if not name.startswith(LEFT_OUT)]


def _mark(root, names):
    """What stands for the contents of files."""
    found = hashlib.sha256()
    for name in names:
        found.update(name.encode() + (root / name).read_bytes())
    return found.hexdigest()


class CoverageMap:
    """The coverage of each file of tests, kept in the cache under the contents of what it saw."""

    def __init__(self, tree, sources):
        self.tree, self.folder = tree, CACHE / "coverage"
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = _mark(tree, sources)
        self.marks = {name: _mark(tree, [name]) + mark for name in files_of_tests()}
        self.seconds = {}

    def measure(self):
        """Run the files of tests that changed, or all where the sources did."""
        for name, mark in self.marks.items():
            kept = self._kept(name)
            if kept is None:
                self._measure(name, mark)
                kept = self._kept(name) or {"failed": [], "skipped": [], "seconds": {}}
            wrong = {*kept["failed"], *kept["skipped"]}
            self.seconds |= {
                test: took for test, took in kept["seconds"].items() if test not in wrong
            }  # fmt: skip

    def _place(self, name, kind):
        return self.folder / f"{name.replace('/', '.')}.{kind}"

    def _kept(self, name):
        place = self._place(name, "json")
        found = json.loads(place.read_text()) if place.exists() else {}
        return found if found.get("mark") == self.marks[name] else None

    def _measure(self, name, mark):
        data, place = self._place(name, "coverage"), self._place(name, "json")
        data.unlink(missing_ok=True)
        report = place.with_suffix(".run")
        status = wait(start(self.tree, [name], Watch(report, coverage=str(data))), HANG)
        found = json.loads(report.read_text()) if report.exists() else {}
        if status not in {0, 1, 5} or not found:
            print(f"{name}: no coverage, status {status}; see {report.with_suffix('.log')}")
            return
        for test in found["failed"]:
            print(f"{test} fails, and judges no mutant", file=sys.stderr)
        place.write_text(json.dumps({**found, "mark": mark}))

    def tests_of(self, path, lines):
        """The tests that run a line of a statement; of all lines where it runs at import."""
        from coverage import CoverageData

        found = set()
        for name in self.marks:
            place = self._place(name, "coverage")
            if not place.exists():
                continue
            data = CoverageData(str(place))
            data.read()
            for line, tests in data.contexts_by_lineno(str(self.tree / path)).items():
                if lines is None or line in lines:
                    found.update(tests)
            data.close()
        return {test: self.seconds[test] for test in found if test in self.seconds}


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
