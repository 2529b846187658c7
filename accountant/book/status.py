"""The status of the data sets of a book: what each has spent of its budget, and by whom.

`status_of` makes the `Status` of one data set, `quotas_of` a table of its authors, `buckets_of` one
of its buckets (public parts of the users, such as regions), and `people_of` sums over the data sets
that are about the same people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from accountant.accountants.basic import float_ceiling, printed_decimal
from accountant.accountants.budget import TOLERANCE, Budget
from accountant.book.account import Account
from accountant.book.limits.second_curator import open_proposal
from accountant.formatting import DIGITS, as_displayed, format_upper, short_upper
from accountant.ledger.totals import CompositionNotion, Spending, Total
from accountant.table_display import Table, TableDisplay

STATUS_COLUMNS = (
    "data set", "epsilon", "of", "left", "delta", "counts", "users", "opened", "ends",
)  # fmt: skip


def format_spent(spent: float, limit: float, digits: int = DIGITS) -> str:
    """Return what was spent of a limit, rounded up, but not above what the limit is shown as.

    Round-off may bring a sum above its limit by the share `TOLERANCE`; such a sum is shown as the
    limit itself.
    """
    shown_limit = f"{limit:.6g}"
    if spent <= limit * (1 + TOLERANCE):
        for tried_digits in (digits, 6):
            if as_displayed(spent, tried_digits) <= float(shown_limit):
                return format_upper(spent, tried_digits)
        return shown_limit
    return format_upper(spent, digits)


class StatusFields(NamedTuple):
    """The fields of `Status`, which says what each of them means."""

    name: str
    budget: Budget
    notion: str
    order: float | None
    unit: str
    users: int | None
    counts: str
    total: float
    limit: float
    epsilon: float
    left: float
    opened: str
    relation: str | None
    sums: tuple[str, ...]
    after_plan: bool
    expires: str | None
    closed: str | None
    reason: str
    limited_authors: int
    people: str | None
    protects: str
    most: float
    window: str | None
    windows: str | None
    log_time: str | None
    clock: str | None
    buckets: str | None
    runs: tuple[int, int] | None
    verified: bool
    proposal: str
    raise_needs: int


class Status(TableDisplay, StatusFields):
    """A data set that has spent ``total`` of ``limit`` in the unit ``counts``.

    ``epsilon`` is what was spent as an epsilon at the budget's delta, and ``left`` what is left of
    it, as `Book.left` returns it.  ``sums`` are all sums that
    the composition ``notion`` keeps, exactly; ``after_plan`` says that epsilons are added to that
    of a certified plan.  With windows, each of them has a budget of its own: ``windows`` is their
    kind, "month" say, and ``window`` the one that is open.  With ``buckets`` each bucket has one.
    ``total``, ``limit`` and ``epsilon`` are those of the open window, and of the bucket that spent
    most.

    ``protects`` says in words whose data the budget protects, and ``most`` is the largest epsilon
    that a budget can have: more than ``budget`` where a window takes over what earlier ones left,
    or where an earlier one had a larger budget.

    ``expires`` is the time from which on nothing can be spent, ``closed`` the time when the data
    set was closed for good, ``reason`` the stated reason of the last change of its terms.
    ``log_time`` is the log's time that counts for windows, or for the end, and ``clock`` what the
    clock says; both are None where they are less than a minute apart, or nothing depends on them.
    ``limited_authors`` is how many authors have a quota, ``people`` the name of those whom the data
    are about.  ``runs`` are (runs made, runs paid) of a plan that was set aside.  ``verified`` says
    that each plan must be opened with a proof of its cost.  ``proposal`` says in words which change
    waits for a second curator, "" where none does.  ``raise_needs`` is how many curators the data
    set itself asks for, where a change gives more.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(_status_lines(self))

    def _table(self) -> Table:
        return statuses_table([self])


def _status_lines(status: Status) -> Iterator[str]:
    """Yield what was spent of a data set in one line, then the terms that apply to it."""
    limit = epsilon_limit(status)
    spent = f"epsilon {format_spent(status.epsilon, limit)} of {limit:.6g}"
    other = f" ({other_sum(status)})" if other_sum(status) else ""
    who = f"each of {status.users} users" if status.users else status.protects
    when = "" if status.window is None else f" in {status.window}"
    delta = short_upper(status.budget.delta)
    yield f"{status.name}: spent {spent} at delta {delta}{other}{when}, for {who}"
    if status.most > status.budget.epsilon:
        yield f"  one window has at most epsilon {format_upper(status.most)}"
    if status.runs is not None:
        made_runs, paid_runs = status.runs
        yield f"  {made_runs:,} of {paid_runs:,} runs of the plan that was set aside are made"
    if status.verified:
        yield "  each plan is opened with a proof of its cost"
    # the first 19 characters of a time are those up to its second
    if status.closed is not None:
        yield f"  closed {status.closed[:19]} (UTC): {status.reason}"
    elif status.expires is not None:
        yield f"  expires {status.expires[:19]} (UTC)"
    if status.raise_needs > 1:
        yield "  a larger budget or a later end needs two curators"
    if status.proposal:
        yield f"  {status.proposal}"
    if status.log_time is not None and status.clock is not None:
        times = f"the log's time is {status.log_time[:19]}, the clock says {status.clock[:19]}"
        unconfirmed = "; no later window opens until the clock is confirmed"
        yield f"  {times} (UTC)" + (unconfirmed if status.log_time < status.clock else "")
    if status.limited_authors:
        yield f"  authors with a quota: {status.limited_authors:,}"


def statuses_table(statuses: Iterable[Status]) -> Table:
    """Return data sets as rows of a table."""
    rows = [
        (status.name, status.epsilon, epsilon_limit(status), status.left, status.budget.delta,
         other_sum(status), status.users, status.opened, status.closed or status.expires)
        for status in statuses
    ]  # fmt: skip
    return Table(STATUS_COLUMNS, rows, upper=("epsilon",), lower=("of", "left"))


def epsilon_limit(status: Status) -> float:
    """Return the epsilon that may be spent: more than the budget where a window takes over some."""
    return status.limit if status.counts == "epsilon" else status.budget.epsilon


def other_sum(status: Status) -> str:
    """Return the sum that decides what fits, in words; empty where that is the epsilon itself."""
    if status.counts == "epsilon":
        return ""
    return f"{status.counts} {format_spent(status.total, status.limit)} of {status.limit:.6g}"


def status_of(account: Account) -> Status:
    """Return the status of a data set; call it inside a transaction."""
    notion, total = account.standing()
    terms, window = account.terms, account.window
    last_charge = account.last_charge()
    shown = shown_total(notion.budget, notion, total)
    # The sums may be those of different users; no single user exceeds the admitted epsilon.
    epsilon = min(notion.epsilon(total), notion.budget.admitted_epsilon)
    # After a correction of the clock the open window may have spent more than its budget.
    if window is not None and notion.exceeds(total):
        shown, epsilon = notion.shown(total), notion.epsilon(total)
    times = account.log.times
    is_over = terms.is_over(times.latest)
    is_windowed = window is not None and not is_over
    log_time = times.window if is_windowed else times.latest
    has_time = window is not None or terms.expires is not None
    differs = has_time and bool(times.difference(log_time))
    protects = account.unit
    largest_budget = account.budget
    if window is not None:
        protects = f"the data of {account.unit} in {window.kind.in_words} (UTC)"
        # An earlier window may have had a larger budget.
        largest_budget = Budget(terms.largest, account.budget.delta)
    elif account.buckets is not None:
        protects = f"{account.unit} in one {account.buckets}"
    after_plan = account.counts_after_plan(notion)
    runs = account.runs_set_aside()
    return Status(
        name=account.name,
        budget=account.budget,
        notion=account.notion.name,
        order=account.notion.order,
        unit=account.unit,
        users=account.users,
        counts=shown.unit,
        total=shown.amount,
        limit=shown.limit,
        epsilon=epsilon,
        left=0.0 if is_over or account.has_unknown_terms else notion.epsilon_left(total),
        opened=account.opened,
        relation=None if last_charge is None else last_charge.facts["relation"],
        sums=tuple(notion.encode(total)),
        after_plan=after_plan,
        expires=terms.expires,
        closed=terms.closed or None,
        reason=terms.reason,
        limited_authors=terms.limited_authors or len(terms.listed_quotas),
        people=account.people,
        protects=protects,
        most=account.shown_notion(largest_budget, after_plan).budget.epsilon,
        window=None if window is None else window.label(times.window),
        windows=None if window is None else window.name,
        log_time=log_time if differs else None,
        clock=times.clock if differs else None,
        buckets=account.buckets,
        runs=None if runs is None else (runs.made, runs.paid),
        verified=account.verified,
        proposal=open_proposal(account.log, account.name, account.terms_seq),
        raise_needs=terms.raise_needs,
    )


def shown_total(budget: Budget, notion: CompositionNotion[Any], total: Total[Any]) -> Spending:
    """Return a total with its limit and unit, as tables show it; no user has spent more."""
    if notion.exceeds(total):  # the sums belong to different users, each within one limit
        return Spending("epsilon", budget.epsilon, budget.epsilon)
    return notion.shown(total)


class Quota(NamedTuple):
    """What one author has spent, as an ``epsilon`` that is rounded up, and the ``quota`` if any."""

    author: str
    epsilon: float
    quota: float | None

    @property
    def left(self) -> float | None:
        """Return what remains of the quota; None without one."""
        return None if self.quota is None else max(self.quota - self.epsilon, 0.0)


class Quotas(TableDisplay, list[Quota]):
    """The authors of a data set, ordered by name: what each has spent and may spend."""

    def __repr__(self) -> str:
        return f"<Quotas: {len(self)} authors>"

    def _table(self) -> Table:
        rows = [(quota.author, quota.epsilon, quota.quota, quota.left) for quota in self]
        return Table(
            ("author", "epsilon", "quota", "left"), rows, upper=("epsilon",), lower=("left",)
        )


def quotas_of(account: Account) -> Quotas:
    """Return what every author spent of a data set; call it inside a transaction."""
    notion, _ = account.standing()
    totals = account.author_totals()
    return Quotas(
        Quota(
            author,
            notion.epsilon(account.total_of(notion, totals.parts(author))),
            totals.quotas.get(author),
        )
        for author in sorted({*totals.authors, *totals.quotas})
    )


class Bucket(NamedTuple):
    """What the people of one bucket spent: ``epsilon``, rounded up, and what is ``left``."""

    name: str
    epsilon: float
    left: float


class Buckets(TableDisplay, list[Bucket]):
    """The buckets of a data set, by name."""

    def __repr__(self) -> str:
        return f"<Buckets: {len(self)}>"

    def _table(self) -> Table:
        return Table(
            ("bucket", "epsilon", "left"),
            [tuple(bucket) for bucket in self],
            upper=("epsilon",),
            lower=("left",),
        )


def buckets_of(account: Account) -> Buckets:
    """Return what the people of every bucket spent; call it inside a transaction."""
    notion, budget_epsilon = account.standing().notion, account.budget.epsilon
    return Buckets(
        Bucket(bucket, epsilon, max(budget_epsilon - epsilon, 0.0))
        for bucket, total in sorted(account.bucket_totals().items())
        for epsilon in [min(notion.epsilon(total), account.budget.admitted_epsilon)]
    )


class People(NamedTuple):
    """The people of some data sets: sums of the epsilons and deltas of budgets, and what is spent.

    Each number is rounded up.
    """

    name: str
    datasets: tuple[str, ...]
    epsilon: float
    delta: float
    spent: float


class PeopleTable(TableDisplay, list[People]):
    """The people that data sets of a book name, in the order in which they were first named."""

    def __repr__(self) -> str:
        return f"<People: {len(self)} names>"

    def _table(self) -> Table:
        columns = ("people", "data sets", "epsilon", "delta", "spent")
        rows = [(people.name, ", ".join(people.datasets), *people[2:]) for people in self]
        return Table(columns, rows, upper=columns[2:])


def people_of(statuses: Iterable[Status]) -> PeopleTable:
    """Return, for each name of people, the sums over the data sets that are about them."""
    statuses_by_people: dict[str, list[Status]] = {}
    for status in statuses:
        if status.people is not None:
            statuses_by_people.setdefault(status.people, []).append(status)
    return PeopleTable(
        People(
            name,
            tuple(status.name for status in group),
            _sum_up(status.most for status in group),
            _sum_up(status.budget.delta for status in group),
            _sum_up(status.epsilon for status in group),
        )
        for name, group in statuses_by_people.items()
    )


def _sum_up(terms: Iterable[float]) -> float:
    """Return the sum of the numbers as they are printed, computed exactly and rounded up."""
    return float_ceiling(sum(map(printed_decimal, terms), Decimal(0)))
