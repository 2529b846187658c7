"""Certificates of plans as they are used, beside those of an earlier version that were kept.

No upper end may be below the kept lower end, which was proved, nor above the kept upper end by
more than `WIDTH` of epsilon.  `python -m tests.references.corpus.report` prints times beside it.
"""

import json

import pytest

from accountant import Tight
from tests.references.corpus.plans import plan_of
from tests.references.corpus.write import DATA

ROWS = json.loads(DATA.read_text())
WIDTH = 1e-6  # of epsilon
CURVE_WIDTH = 4e-3  # of an epsilon that is asked with others
LONGEST_QUICK = 0.02  # processor seconds that one answer of the quick test took when it was kept
# every third plan that is quick, at one delta
QUICK = [row for row in ROWS if max(end[4] for end in row["ends"]) < LONGEST_QUICK][::3]


def assert_agrees(row, numbers):
    plan = plan_of(row["plan"])
    for number in numbers:
        delta, lower, upper, _, _ = row["ends"][number]
        found = Tight().certify(plan, delta)
        assert found.upper >= lower, (row, delta, found)
        assert found.lower <= upper, (row, delta, found)
        assert found.upper <= upper * (1 + WIDTH), (row, delta, found)


def assert_curves_agree(row):
    """The answers at all deltas at once are those at one delta."""
    plan, deltas = plan_of(row["plan"]), [end[0] for end in row["ends"]]
    epsilons = Tight().epsilons(plan, deltas)
    for (_, lower, upper, _, _), epsilon in zip(row["ends"], epsilons, strict=True):
        assert lower <= epsilon <= upper * (1 + CURVE_WIDTH), (row, epsilons)


def test_the_corpus_is_as_large_as_it_was():
    assert len(ROWS) >= 400
    assert all(len(row["ends"]) == 4 for row in ROWS)


def test_quick_plans_of_the_corpus_agree_with_kept_certificates():
    assert len(QUICK) > 50
    for number, row in enumerate(QUICK):
        assert_agrees(row, [number % 4])


def test_quick_plans_of_the_corpus_agree_with_kept_certificates_at_many_deltas():
    for row in QUICK[::4]:
        assert_curves_agree(row)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ROWS)))
def test_the_corpus_agrees_with_kept_certificates(number):
    assert_agrees(ROWS[number], range(4))
    assert_curves_agree(ROWS[number])
