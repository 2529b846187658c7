"""``dp-attest ledger open|close|raise|expire|quota|...``: terms of a data set.

A book is a database of data sets, the privacy budget of each, and what was spent of it.  These
commands set the terms on which a data set may be spent: its budget, the time at which it expires,
and the quota of each author.  The docstring of each command is its ``--help``; the work is
done by `accountant.book`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.exit_status import parse_number
from accountant.cli.ledger_options import (
    AcceptUnsigned,
    BookName,
    ClaimName,
    ClockTime,
    DatasetName,
    KeyFile,
    NewBook,
    PinFile,
    Reason,
    ReasonOfSet,
    check_reason_goes_with_set,
    open_book,
    print_statuses,
    wrapped,
    writes_to_stdout,
)
from accountant.cli.options import Force, Json, delta_or_none, epsilon_of, proof_of_plan
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from accountant.accountants.budget import Budget
    from accountant.plans.plan import Plan
    from accountant.proofs.checked_proof import CheckedProof

BudgetEpsilon = Annotated[
    str | None,
    option(
        "epsilon",
        "Set the budget's epsilon; by default that of the plan file, else what --plan costs.",
    ),
]
BudgetDelta = Annotated[
    str | None,
    option(
        "delta", "Set the budget's delta; by default that of the plan file, else 0 (pure privacy)."
    ),
]
AsidePlan = Annotated[
    str | None,
    option("plan", "Reserve budget now for the plan in PLAN, so that its later runs are paid for."),
]
AsideRuns = Annotated[
    str | None,
    option("runs", "Reserve budget for N runs of --plan (by default 1)."),
]
Window = Annotated[
    str | None,
    typer.Option(
        metavar="W",
        help="Give the whole budget to each 'day', 'week', 'month', 'quarter' or 'year', or to any "
        "'30 days' (or another number) in a row.",
    ),
]
Carry = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Let each window also spend what the N windows before it did not (by default 0).",
    ),
]
Buckets = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="Give the whole budget to each bucket of people; WORD says what one is, such as "
        "region.",
    ),
]
Notion = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Choose how costs add up: pure, pure-or-rdp, zcdp, rdp or gdp; by default pure at "
        "delta 0, else pure-or-rdp, which admits the most, or the one in which --plan fits.",
    ),
]
RenyiOrder = Annotated[
    str | None,
    typer.Option(metavar="A", help="Set the Rényi order at which rdp and pure-or-rdp add up."),
]
Users = Annotated[
    str | None, typer.Option(metavar="N", help="Give the whole budget to each of N users.")
]
Unit = Annotated[
    str | None,
    typer.Option(metavar="WORDS", help="Say who or what is protected; by default 'one row'."),
]
Idealised = Annotated[
    bool,
    typer.Option(
        "--idealised",
        help="Also allow noise drawn in floats, whose last digits can reveal the data.",
    ),
]
Expires = Annotated[
    str | None, typer.Option(metavar="TIME", help="Refuse to spend anything from TIME (UTC) on.")
]
People = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name the people whom the data are about: `status` adds up all budgets of one NAME.",
    ),
]
AsideProof = Annotated[
    str | None,
    option(
        "proof",
        "Check the proof in FILE, which `certify` wrote for all runs of --plan, before anything is "
        "opened.",
    ),
]
Verified = Annotated[
    bool,
    typer.Option(
        "--verified",
        help="Refuse to spend on anything but plans that come with a proof of their cost.",
    ),
]


RaiseNeeds = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Ask for N curators, 1 or 2, where a change gives this data set more (by default 1, "
        "or as the roles of the book say).",
    ),
]


def open_(
    book: BookName,
    name: DatasetName,
    epsilon: BudgetEpsilon = None,
    delta: BudgetDelta = None,
    plan: AsidePlan = None,
    runs: AsideRuns = None,
    window: Window = None,
    carry: Carry = None,
    buckets: Buckets = None,
    notion: Notion = None,
    order: RenyiOrder = None,
    users: Users = None,
    unit: Unit = None,
    idealised: Idealised = False,
    expires: Expires = None,
    people: People = None,
    proof: AsideProof = None,
    verified: Verified = False,
    raise_needs: RaiseNeeds = None,
    new: NewBook = False,
    clock: ClockTime = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
    accept_unsigned: AcceptUnsigned = False,
) -> None:
    """Open a data set with its budget, in a book that is there or, with --new, in a new one.

    Examples: dp-attest ledger open book.db survey --new --epsilon 1 --unit "one person";
    dp-attest ledger open book.db visits --plan plan.toml --runs 12;
    dp-attest ledger open book.db votes --plan plan.toml --proof cost.proof.json
    --verified;
    dp-attest ledger open book.db clinic --epsilon 1 --window month --carry 2
    """
    from accountant.book.chain.entries import checked_name
    from accountant.book.clock import confirmed_until
    from accountant.book.dataset_terms import DatasetTerms
    from accountant.errors import ParameterError

    order_number, user_count, run_count, carried, curators_needed = (
        None if text is None else parse_number(text)
        for text in (order, users, runs, carry, raise_needs)
    )
    checked_name("name", name)
    confirmed_until(clock)  # a wrong time is refused before the cost of a plan is computed
    if proof is not None and plan is None:
        raise ParameterError("--proof", proof, "given with --plan")
    whole_plan, budget, proved = _plan_and_budget(epsilon, delta, plan, run_count, proof)
    terms = DatasetTerms(
        budget=budget,
        notion=notion,
        order=order_number,
        users=user_count,
        unit=unit,
        idealised=idealised or None,
        expires=expires,
        people=people,
        window=window,
        carry=carried,
        buckets=buckets,
        plan=whole_plan,
        runs=run_count,
        verified=verified or None,
        proof=proved,
        raise_needs=curators_needed,
    )
    terms.checked_facts()
    terms.checked_proof()  # A bad proof is refused before a book is made.
    with open_book(
        book, pin, new=new, key=key, clock=clock, accept_unsigned=accept_unsigned
    ) as opened_book:
        print_statuses([opened_book.dataset(name, **terms._asdict())], json)


def _plan_and_budget(
    epsilon: str | None, delta: str | None, plan: str | None, runs: Any, proof: str | None
) -> tuple[Plan | None, Budget, CheckedProof | None]:
    """Return the plan of a file, the budget, and the checked proof of what the plan costs.

    Arguments are the texts of the command line; ``plan`` and ``proof`` are paths, ``runs`` is the
    number of runs of the plan, 1 if None.  Each of the budget's two numbers is as stated, else that
    of the file; else delta is 0, and epsilon is what all runs of the plan cost at delta.
    """
    from accountant.accountants.budget import Budget
    from accountant.accountants.tight import Tight
    from accountant.book.dataset_terms import RUNS
    from accountant.errors import ParameterError
    from accountant.formats.plan_toml import read_file
    from accountant.plans.plan import Repeat

    plan_file = None if plan is None else read_file(plan)
    file_budget = None if plan_file is None else plan_file.budget
    budget_delta = delta_or_none(file_budget, delta) or 0.0
    budget_epsilon = epsilon_of(file_budget, epsilon)
    if plan_file is None:
        if budget_epsilon is None:
            raise ParameterError("--epsilon", None, "given, or a --plan whose cost it is")
        return None, Budget(budget_epsilon, budget_delta), None
    whole_plan = plan_file.plan
    run_count = 1 if runs is None else RUNS.check("--runs", runs)
    all_runs = whole_plan if run_count == 1 else Repeat(whole_plan, run_count)
    proved = proof_of_plan(all_runs, budget_delta, proof)
    if budget_epsilon is None:
        budget_epsilon = (
            Tight().epsilon(all_runs, budget_delta) if proved is None else proved.epsilon
        )
        if budget_epsilon == float("inf"):
            raise ParameterError("--delta", budget_delta, "one at which the plan has an epsilon")
    return whole_plan, Budget(budget_epsilon, budget_delta), proved


def close(
    book: BookName,
    name: DatasetName,
    reason: Reason,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
    accept_unsigned: AcceptUnsigned = False,
) -> None:
    """Close a data set for good: nothing more is spent, and stored answers stay readable.

    Example: dp-attest ledger close book.db survey --reason "the study ended"
    """
    with open_book(book, pin, key=key, accept_unsigned=accept_unsigned) as opened_book:
        print_statuses([opened_book.close_dataset(name, reason)], json)


def raise_(
    book: BookName,
    name: DatasetName,
    epsilon: Annotated[str, option("epsilon", "Set the new budget's epsilon.")],
    reason: Reason,
    delta: Annotated[
        str | None, option("delta", "Set the new budget's delta; by default it stays as it was.")
    ] = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
    accept_unsigned: AcceptUnsigned = False,
) -> None:
    """Give a data set another budget, which must hold what was spent.

    Example: dp-attest ledger raise book.db survey --epsilon 2 --reason "second wave"
    """
    from accountant.accountants.budget import Budget
    from accountant.domains import POSITIVE

    new_epsilon = POSITIVE.check("--epsilon", parse_number(epsilon))
    new_delta = delta_or_none(None, delta)
    with open_book(book, pin, key=key, accept_unsigned=accept_unsigned) as opened_book:
        if new_delta is None:
            new_delta = opened_book.status(name).budget.delta
        budget = Budget(new_epsilon, new_delta)
        print_statuses([opened_book.raise_budget(name, budget, reason)], json)


def expire(
    book: BookName,
    name: DatasetName,
    when: Annotated[
        str, typer.Option(metavar="TIME", help="Refuse to spend anything from TIME (UTC) on.")
    ],
    reason: Reason,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
    accept_unsigned: AcceptUnsigned = False,
) -> None:
    """Set the time from which on a data set refuses to spend; a later call can move it.

    Example: dp-attest ledger expire book.db survey --when 2027-01-01 --reason consent
    """
    with open_book(book, pin, key=key, accept_unsigned=accept_unsigned) as opened_book:
        print_statuses([opened_book.expire(name, when, reason)], json)


def correct_clock(
    book: BookName,
    reason: Reason,
    clock: ClockTime = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Set a book's time back to the clock's, where a wrong clock has moved it ahead.

    Do it where the clock is right: what was spent by the wrong one counts in the open windows.

    Example: dp-attest ledger correct-clock book.db --reason "the battery was empty"
    """
    with open_book(book, pin, key=key, clock=clock) as opened_book:
        correction = opened_book.correct_clock(reason)
    if writes_to_stdout(json, correction._asdict()):
        return
    # the first 19 characters of a time are those up to its second
    print(
        f"the time of the book was {correction.log_time[:19]}; it is {correction.clock[:19]} (UTC)"
    )
    for name in correction.windows:
        print(wrapped(f"{name}: what was spent later counts in the window that is open"))
    for name in correction.expired:
        print(wrapped(f"{name}: stays expired until `expire` moves its end"))


def quota(
    book: BookName,
    name: DatasetName,
    author: Annotated[str | None, option("author", "Show only what the author WHO spent.")] = None,
    set_: Annotated[
        str | None,
        option("set", "Set the epsilon that the author WHO may spend.", value="WHO=E"),
    ] = None,
    reason: ReasonOfSet = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
    accept_unsigned: AcceptUnsigned = False,
) -> None:
    """Say what each author spent of a data set and may spend, after setting one of the quotas.

    Example: dp-attest ledger quota book.db survey --set ada=0.25 --reason "pilot"
    """
    from accountant.book.status import format_spent
    from accountant.errors import ParameterError
    from accountant.formatting import escape_control, format_lower

    author_of_set, _, epsilon = ("", "", "") if set_ is None else set_.rpartition("=")
    if set_ is not None and not author_of_set:
        raise ParameterError("--set", set_, "WHO=E, such as ada=0.25")
    check_reason_goes_with_set(set_, reason)
    with open_book(book, pin, key=key, accept_unsigned=accept_unsigned) as opened_book:
        if set_ is not None and reason is not None:
            opened_book.set_quota(name, author_of_set, parse_number(epsilon), reason)
        quotas, budget = opened_book.quotas(name), opened_book.status(name).budget
    selected_quotas = type(quotas)(
        [author_quota for author_quota in quotas if author in (None, author_quota.author)]
    )
    if writes_to_stdout(json, {"dataset": name, "quotas": selected_quotas.to_records()}):
        return
    # Numbers stand first, so that the columns line up whatever the names of authors are.
    print(f"{'epsilon':>12}{'quota':>12}{'left':>12}  author")
    for author_quota in selected_quotas:
        quota_epsilon = author_quota.quota
        limit = "" if quota_epsilon is None else f"{quota_epsilon:g}"
        shown_epsilon = format_spent(author_quota.epsilon, quota_epsilon or budget.epsilon)
        remaining = "" if author_quota.left is None else format_lower(author_quota.left)
        shown_author = escape_control(author_quota.author)
        print(f"{shown_epsilon:>12}{limit:>12}{remaining:>12}  {shown_author}")


def buckets(
    book: BookName,
    name: DatasetName,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
) -> None:
    """Say what the people of each bucket of a data set spent.

    Example: dp-attest ledger buckets book.db survey
    """
    from accountant.book.status import format_spent
    from accountant.formatting import escape_control, format_lower

    with open_book(book, pin) as opened_book:
        table, limit = opened_book.buckets(name), opened_book.status(name).budget.epsilon
    if writes_to_stdout(json, {"dataset": name, "buckets": table.to_records()}):
        return
    print(f"{'epsilon':>12}{'left':>12}  bucket")
    for bucket in table:
        print(
            f"{format_spent(bucket.epsilon, limit):>12}{format_lower(bucket.left):>12}  "
            f"{escape_control(bucket.name)}"
        )


def claim(
    book: BookName,
    name: ClaimName,
    epsilon: Annotated[str, option("epsilon", "The epsilon that is claimed.")],
    delta: Annotated[str, option("delta", "The delta that is claimed.")] = "0",
    alpha: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="Raise a false alarm with probability at most A in all the life of the claim "
            "(by default 0.05).",
        ),
    ] = None,
    relation: Annotated[str | None, option("relation")] = None,
    new: NewBook = False,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
    accept_unsigned: AcceptUnsigned = False,
) -> None:
    """Open a claim on the privacy of a program, to which audits of its versions add evidence.

    What is claimed, and A, stay as they are: another claim is opened under another name, and its
    evidence begins anew. `dp-attest audit target --evidence BOOK` audits a version.

    Example: dp-attest ledger claim book.db mycode:count --epsilon 1 --alpha 0.01
    """
    from accountant.accountants.budget import Budget
    from accountant.book.export import evidence_facts
    from accountant.domains import DELTA, EPSILON

    alarm_rate = None if alpha is None else parse_number(alpha)
    claimed = Budget(
        EPSILON.check("--epsilon", parse_number(epsilon)),
        DELTA.check("--delta", parse_number(delta)),
    )
    with open_book(book, pin, new=new, key=key, accept_unsigned=accept_unsigned) as opened_book:
        evidence = opened_book.claim(name, claimed, alpha=alarm_rate, relation=relation)
    if not writes_to_stdout(json, evidence_facts(evidence)):
        print(wrapped(str(evidence)))
