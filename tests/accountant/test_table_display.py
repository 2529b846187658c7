"""Objects show themselves as tables: escaped, bounds rounded, the same rows as a data frame."""

import html.parser
import re

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    Deviation,
    Filter,
    Ledger,
    Parallel,
    Tight,
    Wanted,
    allocate,
    compare,
)
from accountant.table_display import Table, TableDisplay
from audits import audit, audit_scores
from mechanisms import Gaussian, Laplace, RandomizedResponse

PLAN = 10 * Laplace(3.0) + Gaussian(2.0)
COIN = RandomizedResponse(2, 0.75)


class Cells(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        self.open = tag in {"td", "th"}
        if self.open:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('books')}/b.db"
    with Book.create(url) as book:
        book.dataset("x", Budget(1.0, 1e-6), users=50)
        with book.ledger("x", np.arange(50.0)) as ledger:
            ledger.release(Laplace(50.0), np.sum)
            gate = Filter(np.arange(50.0), Budget(1.0))
            gate.release(Laplace(50.0), np.sum)
            scores = np.random.default_rng(0).normal(size=(2, 200))
            yield {
                "plan": PLAN,
                "one release": Laplace(2.0),
                "loss": Laplace(2.0).loss,
                "comparison": compare(PLAN, 1e-6),
                "certificate": Tight().certify(PLAN, 1e-6),
                "allocation": allocate([Wanted(Laplace, Deviation(), weight=1.0)], Budget(0.5)),
                "filter": gate,
                "ledger": Ledger(np.arange(3.0), PLAN),
                "book": book,
                "book ledger": ledger,
                "status": book.status("x"),
                "history": book.history("x"),
                "finding": audit(Laplace(1.0), rng=0, runs=1000),
                "one-run finding": audit_scores(*scores, delta=1e-5),
            }


def test_every_object_shows_the_same_table_twice(objects):
    for name, one in objects.items():
        frame, cells = one.to_frame(), Cells(one._repr_html_())
        assert list(frame.columns) == cells.rows[0], name
        assert len(frame) == len(cells.rows) - 1, name
        assert len(frame) > 0 or name == "ledger"
        assert len(repr(one)) < 700, name


def test_a_notebook_rounds_bounds_outwards(objects):
    found = objects["certificate"]
    lower, upper = (float(text) for text in Cells(found._repr_html_()).rows[1][:2])
    assert lower <= found.lower <= found.upper <= upper
    assert upper - lower < 1e-7
    for row, text in zip(
        objects["comparison"], Cells(objects["comparison"]._repr_html_()).rows[1:], strict=True
    ):
        assert row.epsilon <= float(text[1]) <= row.epsilon * (1 + 1e-7)
    facts = dict(Cells(objects["finding"]._repr_html_()).rows)
    assert float(facts["epsilon, at least"]) <= objects["finding"].epsilon_lower


def test_text_is_escaped():
    class Odd(TableDisplay):
        def _table(self):
            return Table(("<i>",), [("<script>alert(1)</script>\x1b[2J",)], "a & b")

    shown = Odd()._repr_html_()
    assert "<script>" not in shown
    assert "<i>" not in shown
    assert "\x1b" not in shown
    assert "a &amp; b" in shown
    assert Cells(shown).rows == [["<i>"], ["<script>alert(1)</script>\\x1b[2J"]]


def test_long_tables_are_cut_in_a_notebook_alone():
    class Long(TableDisplay):
        def _table(self):
            return Table(("n",), [(i,) for i in range(100)])

    assert len(Cells(Long()._repr_html_()).rows) == 61
    assert "the last 60 of 100 rows" in Long()._repr_html_()
    assert len(Long().to_frame()) == 100


def test_no_table_shows_data(objects):
    gate = Filter(np.array([123456.0, 654321.0]), Budget(1.0))
    gate.release(Laplace(50.0), lambda data: float(data.mean()))
    assert not re.search("123456|654321|388888", gate._repr_html_())


def test_a_ledger_shows_each_release_and_how_many_users_it_asked():
    ledger = Ledger(np.arange(30.0), Parallel([COIN, COIN]) + Laplace(3.0), rng=0)
    for who in (slice(0, 20), [21, 25]):
        ledger.release_each(COIN, lambda rows: (rows > 3).astype(int), who)
    ledger.release(Laplace(3.0), np.sum)
    shown = [["step", "released", "users asked"]]
    shown += [["1", repr(COIN), "20"], ["2", repr(COIN), "2"], ["3", repr(Laplace(3.0)), "30"]]
    assert Cells(ledger._repr_html_()).rows == shown


def test_a_comparison_is_drawn(objects, tmp_path):
    pytest.importorskip("matplotlib")
    figure = objects["comparison"].plot()
    figure.savefig(tmp_path / "cost.png")
    assert len(figure.axes[0].lines) == 8  # seven accountants, and delta
