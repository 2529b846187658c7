"""Laws of terms that change: the log decides, for every process and at every place."""

import datetime

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    BudgetExceeded,
    DatasetClosed,
    LedgerCorrupt,
    ParameterError,
    PureLoss,
)
from accountant.book import log
from accountant.book.chain.entries import EVERY_CLOCK, LogTimes
from mechanisms import Laplace
from tests.laws.test_books import append_charge, opened_book

DATA = np.arange(20.0)
EARLY, LATE, BACK = (f"2026-0{month}-01T00:00:00.000000+00:00" for month in (1, 3, 2))


@pytest.mark.parametrize("how", ["closed", "expired", "set back"])
def test_after_its_end_nothing_is_spent_in_any_process(how):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "clock_time", lambda _: EARLY)
        with opened_book(budget=Budget(1.0)) as book:
            with (
                Book.open(f"sqlite:///{book._log.name}") as other,
                other.ledger("d", DATA) as ledger,
            ):
                ledger.release(Laplace(10.0), np.sum)
                if how == "closed":
                    book.close_dataset("d", "the end")
                else:
                    book.expire("d", BACK, "the end")
                    patch.setattr(log, "clock_time", lambda _: LATE)
                if how == "set back":
                    book.dataset("seen later", Budget(1.0))
                    patch.setattr(log, "clock_time", lambda _: EARLY)
                with pytest.raises(DatasetClosed):
                    ledger.release(Laplace(10.0), np.sum)
            assert book.spent("d") == 0.1
            book.verify()


@pytest.mark.parametrize("notion", ["pure", "zcdp", "pure-or-rdp"])
def test_a_budget_never_falls_below_what_was_spent(notion):
    with opened_book(budget=Budget(1.0, 1e-6), notion=notion) as book:
        with book.ledger("d", DATA) as ledger:
            ledger.spend(Laplace(8.0))
        with pytest.raises(ParameterError, match="budget must be"):
            book.raise_budget("d", Budget(0.1, 1e-6), "less")
        book.verify()


def append_terms(book, **changed):
    """Write terms with right hashes, whatever was spent."""
    with book._log.writing():
        terms = {"epsilon": 1.0, "delta": 1e-6, "expires": None, "quotas": {}}
        whole = {**terms, "change": "raised", "reason": "why not", **changed}
        book._log.append("terms", whole, "d")


@pytest.mark.parametrize(
    "what", ["after the end", "too low", "less delta", "back in time", "quota"]
)
def test_terms_that_were_not_kept_do_not_verify(what):
    with opened_book(budget=Budget(1.0, 1e-6), notion="pure") as book:
        append_charge(book, PureLoss(0.5))
        if what == "after the end":
            append_terms(book, change="closed")
            append_charge(book, PureLoss(0.1))
        elif what == "too low":
            append_terms(book, epsilon=0.4)
        elif what == "quota":
            author = book._log.author
            used = {author: ["0.5", "0"]}
            append_terms(book, change="quota", quotas={author: 0.55}, whose=author, used=used)
            append_charge(book, PureLoss(0.1), own=["0.6", "0"])
        elif what == "less delta":
            append_terms(book, delta=1e-9)
        else:
            append_terms(book, change="expires", expires="2999-01-01T00:00:00.000000+00:00")
            with book._log.writing():
                book._log.times = LogTimes(EARLY, EARLY, EARLY)
                book._log.append("seed", {}, "d")
        with pytest.raises(LedgerCorrupt):
            book.verify()


@pytest.mark.parametrize("first", ["quota", "spend"])
def test_an_author_never_spends_more_than_the_quota(first):
    with opened_book(budget=Budget(1.0, 1e-6), notion="pure") as book:
        author = book._log.author
        if first == "quota":
            book.set_quota("d", author, 0.25, "a quarter")
        with book.ledger("d", DATA) as ledger:
            ledger.spend(PureLoss(0.1))
            if first == "spend":
                book.set_quota("d", author, 0.25, "a quarter")
            ledger.spend(PureLoss(0.1))
            with pytest.raises(BudgetExceeded):
                ledger.spend(PureLoss(0.1))
        assert book.quotas("d") == [(author, 0.2, 0.25)]
        book.verify()


def months_or_days(kind, day):
    """How many units a day belongs to: its month, or itself; days count from September 2025."""
    when = datetime.date(2025, 9, 1) + datetime.timedelta(days=day)
    return 12 * when.year + when.month if kind == "month" else day


def limit_by_hand(kind, carry, made, day):
    """Tenths that a window may hold, and holds, by the definition; the data set is 9 days old."""
    now, opened = months_or_days(kind, day), months_or_days(kind, 9)
    length = 1 if kind == "month" else 30

    def held(age):
        ages = ((now - months_or_days(kind, when)) // length for when, _ in made)
        return sum(cost for (_, cost), one in zip(made, ages, strict=True) if one == age)

    whole = (now - opened) if kind == "month" else (now - opened + 1) // length - 1
    left = 0
    for age in range(max(min(carry, whole), 0), 0, -1):
        left = max(left + 10 - held(age), 0)
    return 10 + left, held(0)


@pytest.mark.parametrize("carry", [0, 2])
@pytest.mark.parametrize("kind", ["month", "30 days"])
def test_no_window_holds_more_than_its_budget(kind, carry):
    random = np.random.default_rng(7)
    steps = np.append(random.integers(-20, 45, size=24), [70, 1])
    costs = random.integers(2, 21, size=steps.size)
    day, latest, made = 9, 9, []
    with pytest.MonkeyPatch.context() as patch:

        def time(_):
            when = datetime.datetime(2025, 9, 1, 12, tzinfo=datetime.UTC)
            return (when + datetime.timedelta(days=day)).isoformat(timespec="microseconds")

        patch.setattr(log, "clock_time", time)
        with opened_book(budget=Budget(1.0), window=kind, carry=carry) as book:
            book._log.confirmed = EVERY_CLOCK
            ledger = book.ledger("d", DATA)
            for step, cost in zip(steps.tolist(), costs.tolist(), strict=True):
                day = max(day + step, 0)
                latest = max(latest, day)  # whatever the clock says
                most, held = limit_by_hand(kind, carry, made, latest)
                try:
                    ledger.spend(PureLoss(cost / 10))
                except BudgetExceeded:
                    assert held + cost > most
                else:
                    assert held + cost <= most
                    made.append((latest, cost))
                if kind == "30 days":
                    for start in range(latest + 1):
                        inside = sum(c for when, c in made if start <= when < start + 30)
                        assert inside <= 10 * (carry + 1)
            assert len(made) > 6
            book.verify()


@pytest.mark.parametrize("seed", [0, 1])
def test_each_bucket_pays_for_what_touches_it_and_for_nothing_else(seed):
    random = np.random.default_rng(seed)
    held, refused = dict.fromkeys("abc", 0), 0
    with opened_book(budget=Budget(1.0), buckets="day") as book:
        for _ in range(24):
            names = random.choice(list("abc"), size=int(random.integers(1, 4)), replace=False)
            cost = int(random.integers(1, 4))
            fits = all(held[one] + cost <= 10 for one in names)
            ledger = book.ledger("d", DATA, buckets=names.tolist())
            try:
                ledger.spend(PureLoss(cost / 10))
            except BudgetExceeded:
                assert not fits
                refused += 1
            else:
                assert fits
                held.update({str(one): held[one] + cost for one in names})
        assert refused
        assert [one.epsilon * 10 for one in book.buckets("d")] == list(held.values())
        assert book.spent("d") * 10 == max(held.values())
        book.verify()


def append_limited(book, **changed):
    """Write a charge of 0.75 with right hashes, whatever the limits say."""
    whole = {
        "mechanism": {"repr": "x"}, "loss": {"kind": "PureLoss", "epsilon": 0.75}, "who": None,
        "relation": None, "cost": ["0.75", "0.0"], "total": ["0.75", "0.0"], "label": None,
        "seeded": False, "block": None, **changed,
    }  # fmt: skip
    with book._log.writing():
        book._log.append("reserve", whole, "d")


@pytest.mark.parametrize("what", ["parts", "buckets", "runs"])
def test_limits_that_were_not_kept_do_not_verify(what):
    options = {
        "parts": {"window": "month"}, "buckets": {"buckets": "region"},
        "runs": {"plan": 2 * PureLoss(0.1)},
    }[what]  # fmt: skip
    with opened_book(budget=Budget(1.0), **options) as book:
        if what == "runs":
            facts = book._account("d").log
            with facts.writing():
                aside = facts.last_charge("d")
                run = {**aside.facts, "run": "r", "paid": aside.seq, "nth": 2}
                del run["runs"]
                known = {"seq", "time", "author", "kind", "dataset", "key", "index", "before"}
                facts.append(
                    "plan", {key: one for key, one in run.items() if key not in known}, "d"
                )
        elif what == "parts":
            append_limited(book, parts={"2026-01": ["0.1", "0.0"]})
        else:
            append_limited(book, buckets={"b": ["0.75", "0.0"]})
            append_limited(book, buckets={"a": ["0.1", "0.0"]})
        with pytest.raises(LedgerCorrupt):
            book.verify()
