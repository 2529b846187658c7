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
    from accountant.proofs.checked_proof import CheckedProof


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
    proof: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What `certify` wrote for all runs of --plan; it is checked first."
        ),
    ] = None,
    verified: Annotated[
        bool,
        typer.Option(
            "--verified", help="Nothing is spent but by plans that have a proof of their cost."
        ),
    ] = False,
    json: JsonFlag = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Open a data set with its budget; the book is made if there is none.

    Examples: python -m accountant ledger open book.db survey --epsilon 1 --unit "one person";
    python -m accountant ledger open book.db visits --plan plan.toml --runs 12;
    python -m accountant ledger open book.db votes --plan plan.toml --proof cost.proof.json
    --verified;
    python -m accountant ledger open book.db clinic --epsilon 1 --window month --carry 2
    """
    from accountant.book.dataset_terms import DatasetTerms, checked_name
    from accountant.cli.exit_status import parse_number
    from accountant.errors import ParameterError

    a, n, many, carried = (
        None if text is None else parse_number(text) for text in (order, users, runs, carry)
    )
    checked_name("name", name)
    if proof is not None and plan is None:
        raise ParameterError("--proof", proof, "given with --plan")
    whole_plan, budget, proved = _budget(epsilon, delta, plan, many, proof)
    terms = DatasetTerms(
        budget, notion, a, n, unit, idealised or None, expires, people, window, carried, buckets,  # type: ignore[arg-type]  # checked next
        whole_plan, many, verified or None, proved,  # type: ignore[arg-type]
    )  # fmt: skip
    terms.checked_facts()
    terms.checked_proof()  # checked before a book is made
    with open_book(book, pin, create=True, key=key) as opened_book:
        print_statuses([opened_book.dataset(name, **terms._asdict())], json)


def _budget(
    epsilon: str | None, delta: str | None, plan: str | None, runs: object, proof: str | None
) -> tuple[Plan | None, Budget, CheckedProof | None]:
    """Return the plan, the budget: as stated, else that of the file, else its cost; its proof."""
    from accountant.accountants.budget import Budget
    from accountant.accountants.tight import Tight
    from accountant.book.dataset_terms import RUNS
    from accountant.cli.exit_status import parse_number
    from accountant.cli.options import proof_of_plan
    from accountant.domains import DELTA, POSITIVE
    from accountant.errors import ParameterError
    from accountant.formats.plan_toml import read_file
    from accountant.plans.plan import Repeat

    file = None if plan is None else read_file(plan)
    file_budget = None if file is None else file.budget
    d = 0.0 if file_budget is None else file_budget.delta
    if delta is not None:
        d = DELTA.check("--delta", parse_number(delta))
    whole_plan = None if file is None else file.plan
    stated = None if epsilon is None else POSITIVE.check("--epsilon", parse_number(epsilon))
    if whole_plan is None:
        if stated is None:
            raise ParameterError("--epsilon", None, "given, or a --plan whose cost it is")
        return None, Budget(stated, d), None
    many = 1 if runs is None else RUNS.check("--runs", runs)
    all_runs = whole_plan if many == 1 else Repeat(whole_plan, many)
    proved = proof_of_plan(all_runs, d, proof)
    if stated is not None or file_budget is not None:
        return whole_plan, Budget(file_budget.epsilon if stated is None else stated, d), proved  # type: ignore[union-attr]  # just seen
    cost = Tight().epsilon(all_runs, d) if proved is None else proved.epsilon
    if cost == float("inf"):
        raise ParameterError("--delta", d, "one at which the plan has an epsilon")
    return whole_plan, Budget(cost, d), proved
