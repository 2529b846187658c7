"""``dp-attest page``: a budget as one page to look at."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.exit_status import CommandLineError
from accountant.cli.ledger_options import KeyFile, PinFile, ask_passphrase
from accountant.cli.options import (
    Delta,
    Epsilon,
    Force,
    ProofFile,
    budget_of,
    proof_of_plan,
)
from accountant.cli.vocabulary import VOCABULARY, option

PROGRAM = "dp-attest page"


def page(
    out: Annotated[str, option("out", "Write the page, HTML, to FILE.", value="FILE")],
    plan: Annotated[
        str | None, typer.Argument(metavar="[PLAN]", help=VOCABULARY["plan"].means)
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    proof: ProofFile = None,
    ledger: Annotated[
        str | None,
        option(
            "ledger",
            "Show what the ledger BOOK has spent, instead of a plan; BOOK is a file or a URL.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        option("dataset", "Show the data set NAME of the ledger; needed if it has several."),
    ] = None,
    claim: Annotated[
        str | None,
        option("claim", "Show the evidence on the claim CLAIM of the ledger instead."),
    ] = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Write one self-contained page: a plan against its budget, or what a ledger has spent or seen.

    The page of a plan has its cost by every accountant, what remains, and sliders over noise,
    number and delta; noise that the plan leaves open is found first. With --proof its cost is the
    one that the file proves: it is checked in ball arithmetic first, and must be of this plan and
    of the budget's delta. The page of a ledger has what was spent, when and by whom. Pages make
    no network request and hold no data.

    Examples: dp-attest page plan.toml --out budget.html;
    dp-attest page plan.toml --epsilon 1 --delta 1e-6 --out budget.html --force;
    dp-attest page --ledger spent.db --dataset visits --out history.html;
    dp-attest page --ledger spent.db --claim mycode:count --out evidence.html

    Exit status: 0 written, 2 bad usage, a bad plan file, a proof that does not prove its cost or
    no such ledger, 130 interrupted.
    """
    from pathlib import Path

    from accountant.errors import ParameterError
    from accountant.files import write_atomically

    if (plan is None) == (ledger is None):
        raise CommandLineError("give PLAN or --ledger, one of the two")
    if ledger is not None:
        if (epsilon, delta, proof) != (None, None, None):
            raise CommandLineError("--ledger is given without a budget or a proof of a plan")
        if dataset is not None and claim is not None:
            raise ParameterError("--claim", claim, "given without --dataset")
        content = _page_of_ledger(ledger, dataset, claim, pin, key)
    elif (dataset, claim, pin, key) != (None, None, None, None):
        stated = dataset or claim or pin or key
        raise ParameterError("--dataset, --claim, --pin, --key", stated, "given with --ledger")
    else:
        content = _page_of_plan(str(plan), epsilon, delta, proof)
    write_atomically(Path(out), content)


def _page_of_plan(name: str, epsilon: str | None, delta: str | None, proof: str | None) -> str:
    import shlex
    from pathlib import Path

    from accountant.cli.progress import progress_bar
    from accountant.errors import BudgetExceeded, ParameterError
    from accountant.formats.plan_toml import read_file
    from accountant.reports.plan_lines import lines_of_file, plan_of
    from accountant.reports.plan_page import plan_page
    from accountant.reports.plan_summary import step_count, summarise

    file = read_file(name)
    budget = budget_of(file, epsilon, delta)
    command = [*PROGRAM.split(), Path(name).name]
    for name_of_option, value in (
        ("--epsilon", epsilon),
        ("--delta", delta),
        ("--proof", proof),
    ):
        command += [] if value is None else [name_of_option, value]
    try:
        lines = lines_of_file(file, budget)
    except BudgetExceeded as error:
        allowed = f"one that leaves a budget to share ({error})"
        raise ParameterError("plan", name, allowed) from None
    proved = proof_of_plan(plan_of(lines), budget.delta, proof)
    with progress_bar(step_count(lines), show_remaining_time=True) as tick:
        summary = summarise(lines, budget, tick, proved)
    return plan_page(summary, Path(name).name, shlex.join([*command, "--out", "FILE"]))


def _page_of_ledger(
    ledger: str, name: str | None, claim: str | None, pin: str | None, key: str | None
) -> str:
    from functools import partial

    from accountant.book.book import Book
    from accountant.book.databases.database_names import book_url, scheme_of
    from accountant.errors import LedgerBusy, LedgerCorrupt, ParameterError
    from accountant.reports.evidence_page import evidence_page
    from accountant.reports.history_page import history_page

    url = book_url(ledger)
    try:
        ask = partial(ask_passphrase, str(key))
        with Book.open(url, pin=pin, key=key, passphrase=ask) as book:
            if claim is not None:
                return evidence_page(book.evidence(claim), repr(book))
            if name is None and len(book.names) != 1:
                raise ParameterError("--dataset", None, f"one of {', '.join(book.names)}")
            shown = book.names[0] if name is None else name
            # the name of the book, unlike its URL, has no password in it
            return history_page(book.status(shown), book.iter_history(shown), repr(book))
    except (LedgerBusy, LedgerCorrupt) as error:
        raise ParameterError(
            "--ledger", scheme_of(url), f"a book that can be read ({error})"
        ) from None
