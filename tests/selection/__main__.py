"""Choose the cases of `make test`, from what `tests.selection.line_coverage` wrote.

    python -m tests.selection /tmp/lines.gw0.json /tmp/lines.gw1.json

From the most expensive case down, a case above `EXPENSIVE` is listed in `slow_cases.txt`, and runs
in `make thorough` alone, where each line that it runs is run by `OTHERS` cases that stay. A line
that is run is not a line that is judged: so the cheapest case of each test stays, unless it takes
more than `EXPENSIVE_TEST`; of such cases one other is enough. Cases that start processes stay, for
their lines are not seen, and so do the tests of `STAY`.
"""

import argparse
from collections import Counter
from pathlib import Path

from tests.selection.line_coverage import read_lines

LIST = Path(__file__).parent / "slow_cases.txt"
EXPENSIVE = 0.03  # processor seconds
EXPENSIVE_TEST = 0.2  # processor seconds
OTHERS = 2  # cases that stay, of each line
STAY = (
    "tests/guarantees/",
    "tests/test_shape.py",  # a ratchet that is not looked at each time holds nothing
    # one case at least of each family of plans: here the checker and `Tight` read the same plan
    "tests/accountant/verifier/test_random_plans.py::test_certificates_of_random_plans_are_proved",
    # tables: what each case judges, such as a refusal or a false proof, is seen in no line
    "tests/laws/test_refusals.py::",
    "tests/laws/test_power_cuts.py::",
    "tests/laws/test_false_claims.py::",
    "tests/laws/test_false_files.py::",
    "tests/accountant/book/test_verify_sentences.py::",
    # each of these alone caught a fresh mutant
    "tests/laws/test_exact_fits.py::test_logistic_regression_is_scikit_learns[long rows]",
    "tests/audits/recorded_runs/test_record.py::test_costs_are_those_of_textbook_mechanisms[<lambda>-loss3]",
    "tests/accountant/accountants/test_direction.py::test_a_journal_says_what_each_engine",
    "tests/accountant/amplification/test_random_allocation.py::test_an_error_of_the_imaginary_part",
    "tests/accountant/amplification/test_repeated.py::test_a_pure_loss_of_any_size_costs_something",
    "tests/accountant/book/test_verification.py::test_an_open_book_writes_nothing_behind_what_its_pin",
    "tests/algorithms/base/test_budgets.py::test_every_fit_charges_whatever_it_is_given",
    "tests/algorithms/linear_models/test_private_linear_regression.py::test_a_ridge_shortens",
    "tests/audits/recorded_runs/test_record.py::test_of_what_a_method_chooses_only_what_is_released",
    "tests/mechanisms/test_pure_from_approximate.py::test_the_pure_epsilon_is_not_below_the_exact",
)
HEADER = """\
# Cases that run in `make thorough` alone: two cheaper cases at least run each of their lines.
# Written by `python -m tests.selection` from what `tests.selection.line_coverage` measured.
"""


def slow_cases(tests):
    """Return the names of the cases that need not run each time."""
    runs_of = Counter(line for _, _, lines in tests.values() for line in lines)
    slow = []
    cheapest = {}
    for name in sorted(tests, key=lambda name: (tests[name][0], name)):
        cheapest.setdefault(name.partition("[")[0], name)
    for name in sorted(tests, key=lambda name: (-tests[name][0], name)):
        seconds, has_children, lines = tests[name]
        if seconds <= EXPENSIVE:
            break
        if has_children or name.startswith(STAY):
            continue
        if seconds <= EXPENSIVE_TEST and cheapest[name.partition("[")[0]] == name:
            continue
        others = OTHERS if seconds <= EXPENSIVE_TEST else 1
        if all(runs_of[line] > others for line in lines):
            runs_of.subtract(lines)
            slow.append(name)
    return sorted(slow)


def main(arguments=None):
    """Write the list, and print what it saves."""
    parser = argparse.ArgumentParser(prog="python -m tests.selection", description=__doc__)
    parser.add_argument("runs", nargs="+", help="files of tests.selection.line_coverage")
    tests = read_lines(parser.parse_args(arguments).runs)
    slow = slow_cases(tests)
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in slow))
    total = sum(seconds for seconds, _, _ in tests.values())
    moved = sum(tests[name][0] for name in slow)
    print(f"{len(slow)} of {len(tests)} cases, {moved:.0f} of {total:.0f} processor seconds")


if __name__ == "__main__":
    main()
