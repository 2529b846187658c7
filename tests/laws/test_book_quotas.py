"""Laws of quotas: a book does what a dictionary of quotas and a list of charges say.

The model in this file keeps, for each author, the quota and every charge.  A book finds the quota
and the total of an author under the author's key; its verification and its table of authors add
up all charges.  All of them must say the same after every action, in any process.
"""

import datetime
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from accountant import Book, Budget, BudgetExceeded, ParameterError, PureLoss
from accountant.book import log
from accountant.book.quotas import author_limit
from tests.laws.test_book_clocks import START, Model, part_of
from tests.test_public_names import SNAPSHOTS

AUTHORS = ("ada", "bob", "eve")
BUDGET = 20  # tenths
USERS = 6
DATA = np.arange(float(USERS))
DAY = 24  # hours
DEEDS = ("spend", "spend", "spend", "spend", "quota", "quota", "correct", "correct")
HOURS = (1, 2, 30, 40 * DAY)  # that pass between two actions
OFFSETS = (0, 0, 0, 0, 3 * DAY, 40 * DAY, -2 * DAY)  # how far a clock is off
WHO = ((0, USERS), (0, 3), (2, 5), (3, 6))  # the users who pay: from, to
# "listed" data sets are those of the book that lists all quotas in each entry of terms
KINDS = ("plain", "users", "month", "7 days", "listed quota", "listed users", "listed month")


class Action(NamedTuple):
    """What happens next: hours pass, and then an author, whose clock is off, acts."""

    hours: int
    offset: int
    author: str
    what: str  # "spend", "quota", or "correct" the clock
    tenths: int
    who: tuple[int, int]
    opens_anew: bool  # whether the author acts in another process


class OwnCharge(NamedTuple):
    """A charge: the hour by which the log counted it, its cost, its author and who pays."""

    at: int
    tenths: float
    author: str
    who: tuple[int, int] = (0, USERS)


class QuotaModel(Model):
    """A log as the definitions say, with the quota of each author in tenths."""

    def __init__(self, kind):
        super().__init__(kind.removeprefix("listed "))
        self.quotas = {}
        if kind.startswith("listed"):  # what tests/snapshots/book-listed-quotas.db holds
            self.latest = self.window = -7 * DAY
            self.entries = [self.window]
            self.quotas = {"ada": 7.5, "bob": 5.0}
            made = {"ada": 3 if kind == "listed month" else 2, "bob": 1, "eve": 2}
            self.charges = [OwnCharge(self.window, *one[::-1]) for one in made.items()]

    def counts(self, charge, window):
        """Whether a charge counts in the window that is open."""
        if self.kind not in {"month", "7 days"}:
            return True
        at, now = (part_of(self.kind, hour) for hour in (charge.at, window))
        return at == now or (self.kind == "7 days" and now - 7 < at <= now)

    def totals(self, window, author=None):
        """Tenths that each user has paid, to one author or to all."""
        paid = np.zeros(USERS)
        for charge in self.charges:
            if author in (None, charge.author) and self.counts(charge, window):
                paid[slice(*charge.who)] += charge.tenths
        return paid

    def fits(self, limit, paid, action):
        return bool((paid[slice(*action.who)] + action.tenths <= limit).all())

    def own(self):
        """The table of authors."""
        known = {charge.author for charge in self.charges} | self.quotas.keys()
        tenths = {one: self.totals(self.window, one).max() for one in known}
        return {one: (tenths[one], self.quotas.get(one)) for one in known}


class Desks:
    """The books that authors have opened, one each."""

    def __init__(self, url):
        self._url, self._books = url, {}

    def book(self, author, opens_anew=False):
        if opens_anew and author in self._books:
            self._books.pop(author).close()
        if author not in self._books:
            self._books[author] = Book.open(self._url, author=author, clock="trusted")
        return self._books[author]

    def close(self):
        for book in self._books.values():
            book.close()


def follows_the_dictionary(kind, actions, url, path=None):
    """Do all actions in a book, and hold what it does against the model."""
    hour, clock, model = 0, [0], QuotaModel(kind)
    name = kind.split()[-1] if kind.startswith("listed") else "d"

    def now(_):
        time = START + datetime.timedelta(hours=clock[0])
        return time.isoformat(timespec="microseconds")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "clock_time", now)
        if kind.startswith("listed"):
            patch.setenv("DP_ATTEST_PINS", str(path.parent))  # the snapshot has one id
            shutil.copy(SNAPSHOTS / "book-listed-quotas.db", path)
        else:
            options = {"users": USERS} if kind == "users" else {"window": kind}
            with Book.create(url, author="curator") as book:
                book.dataset("d", Budget(BUDGET / 10), **({} if kind == "plain" else options))
        desks = Desks(url)
        try:
            for action in actions:
                hour += action.hours
                clock[0] = hour + action.offset
                book = desks.book(action.author, action.opens_anew)
                acted(book, name, model, action, clock[0])
            for author in AUTHORS:
                agree(desks.book(author, opens_anew=True), name, model, clock[0])
            assert desks.book("ada").verify().entries > 1
        finally:
            desks.close()


def acted(book, name, model, action, clock):
    """Do one action: what is refused changes nothing, and what is done is as the model says."""
    head, window = book.head, model.window_after(clock, confirmed=True)
    author, is_paid_each = action.author, model.kind == "users"
    if action.what == "correct":
        try:
            book.correct_clock("it was wrong")
        except ParameterError:
            assert not model.can_correct(clock, True)
            assert book.head == head
        else:
            assert model.can_correct(clock, True)
            model.correct(clock)
    elif action.what == "quota":
        whose = AUTHORS[action.tenths % len(AUTHORS)]
        status = book.set_quota(name, whose, action.tenths / 10, "as drawn")
        model.note(clock, True)
        model.quotas[whose] = action.tenths
        assert status.limited_authors == len(model.quotas)
    else:
        if not is_paid_each:
            action = action._replace(who=(0, USERS))
        quota, own = model.quotas.get(author, np.inf), model.totals(window, author)
        fits_budget = model.fits(BUDGET, model.totals(window), action)
        with book.ledger(name, DATA) as ledger:
            who = (slice(*action.who),) if is_paid_each else ()
            try:
                ledger.spend(PureLoss(action.tenths / 10), *who)
            except BudgetExceeded as refusal:
                assert book.head == head
                if "quota of" in str(refusal):
                    assert not model.fits(quota, own, action)
                else:  # the snapshot's months take over what the month before left
                    assert not fits_budget
            else:
                assert model.fits(quota, own, action)
                assert fits_budget or name == "month"
                model.note(clock, True)
                model.charges.append(
                    OwnCharge(model.window, action.tenths, author, action.who)
                )  # fmt: skip
    agree(book, name, model, clock)


def agree(book, name, model, clock):
    """What the keys and the table of authors say is what the model says at this time."""
    at, model.window = model.window, model.window_after(clock, confirmed=True)
    known = model.own()
    model.window = at
    table = book.quotas(name)
    assert {one.author: one.quota for one in table} == {
        author: quota and quota / 10 for author, (_, quota) in known.items()
    }
    assert {one.author: 10 * one.epsilon for one in table} == pytest.approx(
        {author: tenths for author, (tenths, _) in known.items()}
    )
    account = book._account(name)
    with book._log.reading():
        account.follow_terms()
        for author, (tenths, quota) in known.items():
            limit = author_limit(account, account.notion, author)
            found = None if limit is None else limit.quota
            assert found == (None if quota is None else quota / 10)
            if found is not None:
                own = account.total_of(account.notion, limit.parts)
                assert float(10 * own.spent) == pytest.approx(tenths)


def drawn(seed, count=40):
    """A history of actions at random."""
    random = np.random.default_rng(seed)

    def one(choices):
        return choices[int(random.integers(len(choices)))]

    return [
        Action(one(HOURS), one(OFFSETS), one(AUTHORS), one(DEEDS), int(random.integers(1, 9)),
               one(WHO), bool(random.random() < 0.3))
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_book_keeps_quotas_as_a_dictionary_does(kind, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.db"
        follows_the_dictionary(kind, drawn(seed), f"sqlite:///{path}", path)
