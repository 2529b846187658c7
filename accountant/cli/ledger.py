"""``dp-attest ledger``: look at, check and export a book of budgets.

`COMMANDS` is the table of all its commands.  Those that set the terms of a data set, such as its
budget, are in `ledger_terms`; those here only read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli import ledger_roles, ledger_terms
from accountant.cli.exit_status import CommandFailed, parse_number
from accountant.cli.ledger_options import (
    COLUMNS,
    CORRUPT,
    BookName,
    DatasetName,
    KeyFile,
    PinFile,
    Reason,
    open_book,
    print_statuses,
    wrapped,
    writes_to_stdout,
)
from accountant.cli.options import Force, Json, PlanName
from accountant.cli.vocabulary import STANDARD_STREAM, option

if TYPE_CHECKING:
    from accountant.book.history import Line
    from accountant.book.status import Status

LINES_AT_ONCE = 1000  # entries of the log that are read and written together

Since = Annotated[str | None, option("since")]
Until = Annotated[str | None, option("until")]
Author = Annotated[str | None, option("author")]
Run = Annotated[str | None, option("run")]


def status(
    book: BookName,
    dataset: Annotated[
        str | None, option("dataset", "Show the data set NAME alone.", old="name")
    ] = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
) -> None:
    """Say what was spent of every budget, or of the data set --dataset, and its terms.

    Example: dp-attest ledger status book.db
    """
    from accountant.book.export import SCHEMA, status_facts
    from accountant.book.status import format_spent
    from accountant.errors import LedgerViolated
    from accountant.formatting import format_upper

    with open_book(book, pin) as opened_book:
        names = opened_book.names if dataset is None else [dataset]
        statuses: list[Status] = []
        violations: dict[str, tuple[str, int]] = {}
        for name in names:
            try:
                statuses.append(opened_book.status(name))
            except LedgerViolated as violation:
                violations |= violation.datasets
        # Sums over people need every data set, so they are not asked for with the facts of one.
        is_asked = not violations and (dataset is None or json != STANDARD_STREAM)
        people = opened_book.people() if is_asked else None
    is_written = False
    if json is not None and dataset is None:
        datasets = [status_facts(status) for status in statuses]
        sums = [] if people is None else people.to_records()
        is_written = writes_to_stdout(
            json, {"schema": SCHEMA, "datasets": datasets, "people": sums}
        )
    if not is_written:
        print_statuses(statuses, None if dataset is None else json)
    for group in () if json == STANDARD_STREAM or people is None else people:
        if len(group.datasets) > 1 and not set(names).isdisjoint(group.datasets):
            message = (
                f"{group.name}: spent epsilon {format_spent(group.spent, group.epsilon)} of "
                f"{format_upper(group.epsilon)} at delta {format_upper(group.delta)} in "
                f"{', '.join(group.datasets)}, about the same people"
            )
            print(wrapped(message))
    if violations:
        raise CommandFailed(str(LedgerViolated(book, violations, None)), CORRUPT)


def remaining(
    book: BookName,
    name: DatasetName,
    plan: PlanName,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
) -> None:
    """Say how many more of each line of a plan alone, or of all of it, fit what is left.

    Example: dp-attest ledger remaining book.db survey plan.toml
    """
    from accountant.cli.plan import room_in_words
    from accountant.formats.plan_toml import read_file, read_plan

    whole_plan, file = read_plan(plan), read_file(plan)
    with open_book(book, pin) as opened_book:
        counts = [
            (release.label, opened_book.remaining(name, release.plan(release.scale)))
            for release in file.releases
        ]
        times = opened_book.remaining(name, whole_plan)
        runs = opened_book.status(name).runs
    lines = [{"release": label, "count": count} for label, count in counts]
    if writes_to_stdout(json, {"dataset": name, "lines": lines, "whole": times}):
        return
    made_runs, paid_runs = runs or (0, 0)
    paid = " (runs that are paid for count)" if times and made_runs < paid_runs else ""
    print(wrapped(room_in_words([*counts, (f"the whole plan{paid}", times)])))


def verify(
    book: BookName,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            "--head",
            metavar="HEAD|FILE",
            help="Check that the log goes on from HEAD, an earlier end of it that `head` printed, "
            "or from the one in FILE.",
        ),
    ] = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Check every hash, total, answer, index and page of a book, and print the end of its log.

    Of a book with roles every signature is checked too, with the public keys in the book.

    Examples: dp-attest ledger verify book.db --pin /mnt/elsewhere/book.pin;
    dp-attest ledger verify book.db --against monday.head
    """
    from accountant.files import read_text

    if against is not None and Path(against).is_file():
        against = read_text(Path(against))
    with open_book(book, pin, key=key) as opened_book:
        checked = opened_book.verify(against)
    if writes_to_stdout(json, checked._asdict()):
        return
    for restored in checked.restored:
        print(wrapped(f"put back from a backup, {restored}"))
    print(f"{checked.entries} entries, none changed; the log ends at\n{checked.head}")


def head(
    book: BookName,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Print the end of a book's log, to keep elsewhere: `verify --against` finds a rewritten log.

    With the private key of a person of the book it is a signed checkpoint of several lines.

    Example: dp-attest ledger head book.db --key ~/.ssh/id_ed25519 > monday.head
    """
    with open_book(book, pin, key=key) as opened_book:
        if not writes_to_stdout(json, {"head": opened_book.head}):
            print(opened_book.head.rstrip("\n"))


def accept_restored(
    book: BookName, reason: Reason, pin: PinFile = None, key: KeyFile = None
) -> None:
    """Go on from a book that was put back from a backup, though later spends are lost from it.

    Example: dp-attest ledger accept-restored book.db --reason "the disk failed"
    """
    with open_book(book, pin, key=key, accept_restored=reason) as opened_book:
        print(f"the log goes on from\n{opened_book.head}")


def history(
    book: BookName,
    name: DatasetName,
    json: Json = None,
    force: Force = False,
    since: Since = None,
    last: Annotated[
        str | None, typer.Option(metavar="N", help="Show only the last N of these entries.")
    ] = None,
    author: Author = None,
    run: Run = None,
    until: Until = None,
    pin: PinFile = None,
) -> None:
    """Print every spend of a data set, and the changes of its terms: when, by whom, for what.

    Where two curators are needed, a proposal is open, seconded by another curator, or lapsed.

    Example: dp-attest ledger history book.db survey --last 20
    """
    from accountant.book.export import history_json
    from accountant.files import write_text

    line_limit = None if last is None else parse_number(last)
    with open_book(book, pin) as opened_book:
        chosen = partial(
            opened_book.iter_history,
            name,
            since=_place_of(since),
            last=line_limit,
            author=author,
            run=run,
            until=_place_of(until),
        )
        if json is not None:
            write_text(json, history_json(opened_book.status(name), chosen()))
        if json != STANDARD_STREAM:
            lines = chosen()
            text_of = _table_of if sys.stdout.isatty() else _line_an_entry
            while page := list(islice(lines, LINES_AT_ONCE)):
                sys.stdout.writelines(text_of(page, _displayed_epsilons(page)))


def evidence(
    book: BookName,
    claim: Annotated[
        str | None,
        typer.Argument(metavar="[CLAIM]", help="Show the audits of the claim CLAIM of the book."),
    ] = None,
    json: Json = None,
    force: Force = False,
    pin: PinFile = None,
    key: KeyFile = None,
) -> None:
    """Say how strong the evidence against every claim is, or list the audits of one claim.

    Each audit of a version multiplies what is bet against the claim by its e-value. If the claim
    holds, the wealth ever reaches 1 / alpha with probability at most alpha: that is the alarm, and
    it stays.

    Example: dp-attest ledger evidence book.db mycode:count
    """
    from accountant.book.export import evidence_facts
    from accountant.formatting import escape_control, format_lower

    with open_book(book, pin, key=key) as opened_book:
        names = opened_book.claims if claim is None else [claim]
        claims = [opened_book.evidence(name) for name in names]
    facts = [evidence_facts(shown) for shown in claims]
    if writes_to_stdout(json, facts[0] if claim is not None else {"claims": facts}):
        return
    for shown in claims:
        print(wrapped(str(shown)))
    if claim is not None:
        print(f"{'entry':>6}  {'time (UTC)':<16}{'e-value':>12}{'wealth':>12}  version")
        for line in claims[0].lines:
            when = line.time[:16].replace("T", " ")  # up to the minute
            numbers = f"{format_lower(line.e_value):>12}{format_lower(line.wealth):>12}"
            print(f"{line.seq:>6}  {when:<16}{numbers}  {escape_control(line.version)}")
            print(f"{'':>8}{escape_control(line.seen)}")
    elif not claims:
        print("this book has no claims: `ledger claim` opens one")


def export(
    book: BookName,
    name: DatasetName,
    out: Annotated[
        str,
        option(
            "out",
            "Write to FILE, .json or .csv (.yaml with --registry), or to standard output for -, as "
            "JSON (YAML).",
        ),
    ],
    registry: Annotated[str | None, option("registry")] = None,
    relation: Annotated[
        str | None,
        option(
            "relation",
            "State in the registry how neighbours differ: R is for example add-remove or "
            "replace-one.",
        ),
    ] = None,
    force: Force = False,
    since: Since = None,
    author: Author = None,
    run: Run = None,
    until: Until = None,
    pin: PinFile = None,
) -> None:
    """Write the history of a data set, or its record for a public registry, to a file.

    The registry is github.com/opendp/deployments-registry-data. Its record says what the book
    knows; a field that the tier of registry.toml asks for and that file leaves out is refused,
    never guessed.

    Examples: dp-attest ledger export book.db survey --out survey.csv;
    dp-attest ledger export book.db survey --registry registry.toml --out survey.yaml
    """
    from accountant.book import export as exports
    from accountant.domains import OneOf
    from accountant.errors import ParameterError
    from accountant.files import write_text
    from accountant.plans.adjacency import check_relation
    from accountant.publishing.deployments_registry import read_stated, record_of_book

    stated = None if registry is None else read_stated(registry, out)
    filters = {"--since": since, "--until": until, "--author": author, "--run": run}
    for name_of_option, text in filters.items():
        if stated is not None and text is not None:
            allowed = "absent: the record of a registry is of all releases"
            raise ParameterError(name_of_option, text, allowed)
    kind = "json" if out == "-" else Path(out).suffix[1:].lower()
    if stated is None:
        OneOf(("json", "csv")).check("the suffix of --out", kind)
    if relation is not None:
        relation = check_relation("--relation", relation)
    with open_book(book, pin) as opened_book:
        status = opened_book.status(name)
        lines = opened_book.iter_history(
            name, since=_place_of(since), author=author, run=run, until=_place_of(until)
        )
        if stated is not None:
            write_text(out, record_of_book(status, lines, relation, stated))
        elif kind == "json":
            write_text(out, exports.history_json(status, lines))
        else:
            write_text(out, exports.history_csv(lines))


def _place_of(stated: str | None) -> str | int | None:
    """Return the number of an entry, or the text of a time."""
    number = None if stated is None else parse_number(stated)
    return number if isinstance(number, int) else stated


def _table_of(lines: list[Line], epsilons: list[str]) -> Iterator[str]:
    """Yield the lines as a table as wide as a terminal; the details are below each line."""
    from textwrap import wrap

    from accountant.formatting import escape_control

    yield f"{'entry':>6}  {'time (UTC)':<16}  {'epsilon':>9}  {'outcome':<9}  author\n"
    for line, epsilon in zip(lines, epsilons, strict=True):
        when = line.time[:16].replace("T", " ")  # up to the minute
        row = (
            f"{line.seq:>6}  {when}  {epsilon:>9}  {line.outcome:<9}  {escape_control(line.author)}"
        )
        yield f"{row if len(row) <= COLUMNS else row[: COLUMNS - 1] + '…'}\n"
        details = escape_control(" ".join(_details(line)))
        # details are indented by 8 characters
        for wrapped_line in wrap(details, COLUMNS - 8, break_on_hyphens=False):
            yield f"{'':8}{wrapped_line}\n"


def _line_an_entry(lines: list[Line], epsilons: list[str]) -> Iterator[str]:
    """Yield one line an entry, for programs that read them."""
    from accountant.formatting import escape_control

    for line, epsilon in zip(lines, epsilons, strict=True):
        text = f"{line.seq}  {line.time[:19]}  {line.author}  {line.outcome}  epsilon {epsilon}"
        yield f"{escape_control('  '.join([text, *_details(line)]))}\n"


def _details(line: Line) -> list[str]:
    """Return what a line is about, what that alone costs, and its names and notes, if any."""
    from accountant.formatting import format_upper

    names = [name for name in (line.run, line.label) if name != line.title]
    notes = [
        *names,
        ", ".join(line.buckets),
        "seeded" * line.seeded,
        f"undeclared {line.undeclared}" * bool(line.undeclared),
        f"executor {line.executor}" * bool(line.executor),
        f"proof {line.proof}" * bool(line.proof),
    ]
    price = "" if line.price is None else f"for {format_upper(line.price)} alone"
    return [*filter(None, [line.title, price, " ".join(filter(None, notes))])]


def _displayed_epsilons(lines: list[Line]) -> list[str]:
    """Return each line's epsilon in its displayed form.

    Totals only rise while the terms stay, and the window: lines between two that are displayed
    alike are displayed like them.
    """
    from accountant.book.status import format_spent

    shown, totals = [""] * len(lines), [line.total for line in lines]
    changes = (
        k
        for k, line in enumerate(lines)
        if line.kind == "terms" or totals[k] < totals[max(k - 1, 0)]
    )
    starts = [0, *changes, len(lines)]
    ranges = [(low, end - 1) for low, end in pairwise(starts) if low < end]
    while ranges:
        low, high = ranges.pop()
        for index in {low, high}:
            line = lines[index]
            limit = line.notion.budget.epsilon
            shown[index] = shown[index] or format_spent(line.epsilon, limit)
        if shown[low] == shown[high]:
            shown[low:high] = [shown[low]] * (high - low)
        elif high - low > 1:
            middle = (low + high) // 2
            ranges += [(low, middle), (middle, high)]
    return shown


COMMANDS: dict[str, Callable[..., None]] = {
    "open": ledger_terms.open_,
    "status": status,
    "remaining": remaining,
    "verify": verify,
    "head": head,
    "accept-restored": accept_restored,
    "export": export,
    "history": history,
    "close": ledger_terms.close,
    "raise": ledger_terms.raise_,
    "expire": ledger_terms.expire,
    "quota": ledger_terms.quota,
    "correct-clock": ledger_terms.correct_clock,
    "buckets": ledger_terms.buckets,
    "claim": ledger_terms.claim,
    "evidence": evidence,
    "roles": ledger_roles.roles,
    "grants": ledger_roles.grants,
}
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Budgets of data sets in a book that every process can spend from.

BOOK is a file, or a URL: sqlite:///FILE or postgresql://USER@HOST/DATABASE. With --pin FILE the
end of the log is compared with what FILE says, and noted there. A book that was opened with --key
FILE is signed, and opens no further data set without it. A book with roles is written to by those
whose public keys it lists, each with the private key, --key FILE.

Exit status: 0 done, 1 the book is corrupt, 2 bad usage or input, 3 the book is busy, 130
interrupted.""",
)
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
