"""Choose the cases of `make test`, from what `tests.selection.line_coverage` wrote.

    python -m tests.selection /tmp/lines.gw0.json /tmp/lines.gw1.json

A parametrised test that is quick in sum keeps all of its cases.  Of another one the cheapest cases
stay which together run every line that all its cases run, and then cheap ones up to `ENOUGH`; the
others are listed in `slow_cases.txt` and run in `make thorough`.  Every test keeps a case.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).parent / "slow_cases.txt"
ENOUGH = 0.5  # processor seconds of all cases of a test: less is not worth a choice
HEADER = """\
# Cases that run in `make thorough` alone: cheaper cases of the same test run the same lines.
# Written by `python -m tests.selection` from what `tests.selection.line_coverage` measured.
"""


def read(paths):
    """Return of each test its seconds, whether it starts processes, and its lines."""
    numbers, tests = {}, {}
    for path in paths:
        run = json.loads(Path(path).read_text())
        lines = [numbers.setdefault(line, len(numbers)) for line in run["lines"]]
        for name, (seconds, has_children, seen) in run["tests"].items():
            tests[name] = seconds, has_children, {lines[number] for number in seen}
    return tests


def chosen(cases):
    """Return the names of the cases that stay; ``cases``: name to seconds, children, lines."""
    if sum(seconds for seconds, _, _ in cases.values()) <= ENOUGH:
        return set(cases)
    # the lines of processes are not seen: such cases count as runs of a line of their own
    lines = {
        name: seen | {("process", name)} if has_children else seen
        for name, (_, has_children, seen) in cases.items()
    }
    missing, stay = set().union(*lines.values()), set()
    while missing or not stay:
        name = max(
            cases.keys() - stay,
            key=lambda name: (len(lines[name] & missing) / max(cases[name][0], 1e-3), name),
        )
        stay.add(name)
        missing -= lines[name]
    total = sum(cases[name][0] for name in stay)
    for name in sorted(cases.keys() - stay, key=lambda name: (cases[name][0], name)):
        total += cases[name][0]
        if total > ENOUGH:
            break
        stay.add(name)
    return stay


def main(arguments=None):
    """Write the list, and print what it saves."""
    parser = argparse.ArgumentParser(prog="python -m tests.selection", description=__doc__)
    parser.add_argument("runs", nargs="+", help="files of tests.selection.line_coverage")
    tests = read(parser.parse_args(arguments).runs)
    families = defaultdict(dict)
    for name, run in tests.items():
        families[name.partition("[")[0]][name] = run
    slow = sorted(name for cases in families.values() for name in cases.keys() - chosen(cases))
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in slow))
    before = sum(seconds for seconds, _, _ in tests.values())
    moved = sum(tests[name][0] for name in slow)
    print(f"{len(slow)} of {len(tests)} cases, {moved:.0f} of {before:.0f} processor seconds")


if __name__ == "__main__":
    main()
