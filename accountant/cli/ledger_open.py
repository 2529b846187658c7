"""``python -m accountant ledger open``: a data set with its budget, and what is set aside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.ledger_options import (
    BookName,
    DatasetName,
    JsonFlag,
    KeyFile,
    PinFile,
    open_book,
    print_statuses,
)

if TYPE_CHECKING:
    from accountant.accountants.budget import Budget
    from accountant.plans.plan import Plan


def open_(
    book: BookName,
    name: DatasetName,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="E", help="The budget's epsilon; by default what --plan costs."),
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Its delta; 0, which is pure, by default.")
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Set a plan aside, at its exact cost if it must be."),
    ] = None,
    runs: Annotated[
        str | None, typer.Option(metavar="N", help="How many runs of --plan; 1 by default.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="W", help="The budget is of each 'month', or of any '30 days'."),
    ] = None,
    carry: Annotated[
        str | None,
        typer.Option(metavar="N", help="N windows before leave what they did not spend."),
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="Each WORD, such as region, has this budget."),
    ] = None,
    notion: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="What adds up: pure, pure-or-rdp, zcdp, rdp or gdp; by default pure at delta 0, "
            "else pure-or-rdp, which admits the most, or the one in which --plan fits.",
        ),
    ] = None,
    order: Annotated[
        str | None, typer.Option(metavar="A", help="The Rényi order of rdp and pure-or-rdp.")
    ] = None,
    users: Annotated[
        str | None, typer.Option(metavar="N", help="Each of N users has this budget.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Who is protected; 'one row' by default.")
    ] = None,
    idealised: Annotated[
        bool,
        typer.Option(
            "--idealised", help="Also take noise of floats, whose last digits can reveal the data."
        ),
    ] = False,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Nothing is spent from TIME (UTC) on.")
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whom the data are about: budgets of one name add up."),
    ] = None,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Open a data set with its budget; the book is made if there is none.

    Examples: python -m accountant ledger open book.db survey --epsilon 1 --unit "one person";
    python -m accountant ledger open book.db visits --plan plan.toml --runs 12;
    python -m accountant ledger open book.db clinic --epsilon 1 --window month --carry 2
    """
    from accountant.book.dataset_opening import DatasetTerms, checked_name
    from accountant.cli.exit_status import parse_number

    a, n, many, more = (
        None if one is None else parse_number(one) for one in (order, users, runs, carry)
    )
    checked_name("name", name)
    whole, budget = _budget(epsilon, delta, plan, many)
    terms = DatasetTerms(
        budget, notion, a, n, unit, idealised or None, expires, people, window, more, buckets,  # type: ignore[arg-type]  # checked next
        whole, many,  # type: ignore[arg-type]
    )  # fmt: skip
    terms.checked_facts()  # before a book is made
    with open_book(book, pin, create=True, key=key) as found:
        print_statuses([found.dataset(name, **terms._asdict())], json)


def _budget(
    epsilon: str | None, delta: str | None, plan: str | None, runs: object
) -> tuple[Plan | None, Budget]:
    """Return the plan, and the budget: as stated, else that of the file, else what it costs."""
    from accountant.accountants.budget import Budget
    from accountant.accountants.tight import Tight
    from accountant.book.dataset_opening import RUNS
    from accountant.cli.exit_status import parse_number
    from accountant.domains import DELTA, POSITIVE
    from accountant.errors import ParameterError
    from accountant.formats.plan_toml import read_file
    from accountant.plans.plan import Repeat

    file = None if plan is None else read_file(plan)
    own = None if file is None else file.budget
    d = 0.0 if own is None else own.delta
    if delta is not None:
        d = DELTA.check("--delta", parse_number(delta))
    whole = None if file is None else file.plan
    if epsilon is not None:
        return whole, Budget(POSITIVE.check("--epsilon", parse_number(epsilon)), d)
    if whole is None:
        raise ParameterError("--epsilon", None, "given, or a --plan whose cost it is")
    if own is not None:
        return whole, Budget(own.epsilon, d)
    many = 1 if runs is None else RUNS.check("--runs", runs)
    cost = Tight().epsilon(Repeat(whole, many), d)
    if cost == float("inf"):
        raise ParameterError("--delta", d, "one at which the plan has an epsilon")
    return whole, Budget(cost, d)
