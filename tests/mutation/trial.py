"""One mutant after the other against the tests that run its line."""

import json
import os

from tests.mutation.covering import in_order
from tests.mutation.running import Watch, start, wait

BUDGET = 10.0  # seconds of processor time that the tests of one mutant took without it
BESIDE = 6.0  # of them for the tests that lie beside the mutant, which come first
WALL = 120.0, 20.0  # seconds until a run is stopped, and times what it should take


def outcome(tree, mutant, lines_of_tests):
    """What became of a mutant in a tree: ``fell``, ``survived`` or ``no test runs it``."""
    tests = lines_of_tests.tests_of(mutant.path, mutant.lines)
    place = f"tests/{mutant.path.rpartition('/')[0]}/"
    near = {name: took for name, took in tests.items() if name.startswith(place)}
    beside = in_order(near, BESIDE)
    others = {name: took for name, took in tests.items() if name not in beside}
    rest = in_order(others, BUDGET - sum(beside.values()))
    for chosen in (beside, rest):
        if chosen and failures(tree, mutant.path, mutant.source, chosen):
            return "fell"
    return "survived" if tests else "no test runs it"


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
    # these tests passed in the tree without the mutant: the mutant broke them
    return found.get("failed") or {"the run": f"ended with {status}"}
