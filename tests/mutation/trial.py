"""One mutant after the other against the tests that run its line."""

import hashlib
import json
import os

from tests.mutation.covering import in_order
from tests.mutation.running import CACHE, Watch, start, wait

BUDGET = 10.0  # seconds of processor time that the tests of one mutant took without it
BESIDE = 6.0  # of them for the tests that lie beside the mutant, which come first
WALL = 120.0, 20.0  # seconds until a run is stopped, and times what it should take


class Trial:
    """Trials on a tree, with results kept so that an interrupted run resumes."""

    def __init__(self, tree, cover, fresh=False, kept=CACHE / "results.jsonl"):
        self.tree, self.cover, self.kept = tree, cover, kept
        if fresh:
            kept.unlink(missing_ok=True)
        lines = kept.read_text().splitlines() if kept.exists() else []
        self.results = {found["mark"]: found for found in map(json.loads, lines)}

    def of(self, mutant):
        """What became of a mutant: ``fell``, ``survived`` or ``no test runs it``.

        One that survived is tried again when its tests changed.
        """
        mark = hashlib.sha256("\n".join([*mutant.name, mutant.source]).encode()).hexdigest()
        found = self.results.get(mark)
        if found and found["outcome"] == "fell":
            return found
        beside, rest = self._chosen(mutant)
        files = {name.partition("::")[0] for name in [*beside, *rest]}
        seen = [sorted([*beside, *rest]), sorted(self.cover.marks[name] for name in files)]
        tests = hashlib.sha256(json.dumps(seen).encode()).hexdigest()
        if found is None or found["tests"] != tests:
            found = {"mark": mark, "tests": tests, "mutant": mutant.name}
            found |= self._tried(mutant, beside, rest)
            self.results[mark] = found
            with self.kept.open("a") as file:
                file.write(json.dumps(found) + "\n")
        return found

    def _chosen(self, mutant):
        """The tests to try, by how long they take: those beside the mutant, then others."""
        tests = self.cover.tests_of(mutant.path, mutant.lines)
        place = f"tests/{mutant.path.rpartition('/')[0]}/"
        near = {name: took for name, took in tests.items() if name.startswith(place)}
        beside = in_order(near, BESIDE)
        others = {name: took for name, took in tests.items() if name not in beside}
        return beside, in_order(others, BUDGET - sum(beside.values()))

    def _tried(self, mutant, beside, rest):
        for chosen in (beside, rest):
            failed = failures(self.tree, mutant.path, mutant.source, chosen) if chosen else {}
            if failed:
                name, words = next(iter(failed.items()))
                return {"outcome": "fell", "by": name, "words": words[-200:]}
        return {"outcome": "survived" if beside or rest else "no test runs it"}


def failures(tree, path, source, chosen):
    """What fails first, and how, where a file has another source; empty where nothing does."""
    file = tree / path
    right, before = file.read_bytes(), file.stat()
    report = tree.with_suffix(".json")
    try:
        file.write_text(source)
        names = list(dict.fromkeys(name.partition("::")[0] for name in chosen))
        child = start(tree, ["-x", *names], Watch(report, chosen))
        status = wait(child, WALL[0] + WALL[1] * sum(chosen.values()))
    finally:
        file.write_bytes(right)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    if status in {0, 5}:
        return {}
    found = json.loads(report.read_text()) if report.exists() else {}
    # the tree without the mutant was run in this way for its coverage: the mutant broke it
    return found.get("failed") or {"the run": f"ended with {status}"}
