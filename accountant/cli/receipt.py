"""``dp-attest receipt``: one signed document on a release, which its checker alone can verify."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.cli.exit_status import CommandFailed, parse_number
from accountant.cli.ledger_options import PinFile, ask_passphrase, open_book
from accountant.cli.options import Delta, Epsilon, Force
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from accountant.verifier import Receipt

UNPROVED, REFUSED = 1, 2  # exit status: something is not proved, or a part speaks against another
ReceiptFile = Annotated[
    Path, typer.Argument(metavar="RECEIPT", help="The receipt that `receipt make` wrote.")
]
AuthorsKey = Annotated[
    Path | None,
    option(
        "key",
        "Refuse a receipt that was not signed with the public key in FILE (.pub of OpenSSH).",
    ),
]
Several = list[str] | None


def make(
    out: Annotated[str, option("out", "Write the receipt, JSON, to FILE.", value="FILE")],
    key: Annotated[
        str, option("key", "Sign with the Ed25519 private key in FILE, as ssh-keygen writes it.")
    ],
    plan: Annotated[
        str | None,
        option("plan", "State the plan; by default what the ledger charged, or the run."),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    proof: Annotated[
        str | None,
        option("proof", "Hold the proof in FILE; by default it is written now."),
    ] = None,
    ledger: Annotated[
        str | None,
        option("ledger", "Hold the entries of the ledger BOOK, a file or a URL."),
    ] = None,
    dataset: Annotated[str | None, option("dataset", "Name the data set of the ledger.")] = None,
    since: Annotated[
        str | None,
        option("since", "Begin with entry N; by default where the data set opens.", value="N"),
    ] = None,
    until: Annotated[
        str | None, option("until", "End with entry N; by default with the last.", value="N")
    ] = None,
    others: Annotated[
        bool,
        typer.Option("--others", help="Show entries of other data sets that lie between, too."),
    ] = False,
    audit: Annotated[
        Several, typer.Option(metavar="FILE", help="Hold the findings of an audit, its --json.")
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Hold the statement of a training run, its --json."),
    ] = None,
    published: Annotated[
        Several, typer.Option(metavar="FILE", help="Hold the digest of what was published.")
    ] = None,
    code: Annotated[
        Several, typer.Option(metavar="FILE", help="Hold the digest of code that released it.")
    ] = None,
    author: Annotated[
        str, option("author", "Name the author, where the ledger has no roles.")
    ] = "",
    pin: PinFile = None,
    force: Force = False,
) -> None:
    """Write a receipt: what was promised, proved, audited, spent and published, signed.

    It joins what lies in several files: the plan and its proof, the entries of the ledger that
    charged it, findings of audits with what they did not test, the statement of a training run,
    digests of code and of published files. All must be about one plan. It is an in-toto statement
    in a DSSE envelope; the fields are in docs/receipt.schema.json.

    Examples: dp-attest receipt make --ledger book.db --dataset visits --key ~/.ssh/id_ed25519
    --audit audit.json --code release.py --published table.csv --out receipt.json;
    dp-attest receipt make --plan plan.toml --key ada --author ada --out receipt.json

    Exit status: 0 written; 2 bad usage, or parts about different plans; 3 the ledger is busy;
    130 interrupted.
    """
    from functools import partial

    from accountant.accountants.budget import Budget
    from accountant.book.chain.author_keys import AuthorKey
    from accountant.book.chain.signatures import PERSONS_KEY, key_of
    from accountant.cli.options import budget_of
    from accountant.cli.progress import waiting
    from accountant.errors import ParameterError
    from accountant.files import read_text, write_atomically
    from accountant.formats.plan_file import PlanFile
    from accountant.formats.plan_toml import read_file, read_plan
    from accountant.publishing.receipt import make_receipt
    from accountant.training.statement import TrainingStatement

    if (ledger is None) != (dataset is None):
        raise ParameterError("--dataset", dataset, "given with --ledger, and only with it")
    file = None if plan is None else read_file(plan)
    is_stated = epsilon is not None or (file is not None and file.budget is not None)
    budget: Budget | None = None
    if is_stated:
        budget = budget_of(file or PlanFile(()), epsilon, delta)
    signing_key, statement = key_of(key, partial(ask_passphrase, key)), None
    if not isinstance(signing_key, AuthorKey):
        raise ParameterError("--key", "a secret", PERSONS_KEY)
    with waiting("reading, proving and signing"):
        if training is not None:
            statement = TrainingStatement.from_json(read_text(Path(training)))
        with nullcontext() if ledger is None else open_book(ledger, pin) as book:
            document = make_receipt(
                signing_key,
                plan=None if plan is None else read_plan(plan),
                budget=budget,
                proof=proof,
                book=book,
                dataset=dataset or "",
                since=None if since is None else parse_number(since),
                until=None if until is None else parse_number(until),
                others=others,
                audits=audit or (),
                training=statement,
                published=published or (),
                code=code or (),
                author=author,
            )
    write_atomically(Path(out), document)
    print(f"wrote {out}: {len(document):,} bytes; check it: dp-attest receipt verify {out}")


def checked(receipt: Path, key: Path | None) -> tuple[Receipt, bytes]:
    """Return what holds of a receipt, and its bytes; a refusal is one line, and exit status 2."""
    from accountant.cli.progress import waiting
    from accountant.proofs.checked_proof import refuse_without_flint
    from accountant.proofs.claimed_losses import refuse_other_claims
    from accountant.verifier import ProofError, check_receipt
    from accountant.verifier.receipt import MEBIBYTES, read_public_key

    refuse_without_flint()
    try:
        author_key = None if key is None else read_public_key(key)
        with open(receipt, "rb") as file, waiting("checking"):
            document = file.read(MEBIBYTES * 2**20 + 1)
            result = check_receipt(document, author_key)
    except (ProofError, ValueError) as error:
        raise CommandFailed(f"refused: {error}", REFUSED) from None
    if result.verdict is not None:
        refuse_other_claims(result.verdict.plan, decimal=result.verdict.delta == 0)
    return result, document


def verify(receipt: ReceiptFile, key: AuthorsKey = None) -> None:
    """Check a receipt, and say what is proved, what is audited, and what is only claimed.

    A receipt of which a byte was changed is refused. The signature is checked with the key in the
    file: compare its fingerprint with the author's, or give the author's public key. The proof is
    checked again in ball arithmetic, and the entries of the book are hashed again.

    This command reads nothing but the receipt. It also refuses a proof in which a mechanism claims
    another loss than its own. The checker is also a distribution of its own, which needs
    python-flint alone: in a copy of the project `pip install ./distributions/verify`, then
    `dp-attest-verify receipt.json`.

    Example: dp-attest receipt verify receipt.json --key ada.pub

    Exit status: 0 signed, proved, and no part speaks against another; 1 signed, and a line says
    PROBLEM; 2 refused; 130 interrupted.
    """
    from accountant.verifier import receipt_words

    result, _ = checked(receipt, key)
    print(receipt_words(result, is_key_known=key is not None))
    if result.problems:
        raise typer.Exit(UNPROVED)


def page(
    receipt: ReceiptFile,
    out: Annotated[str, option("out", "Write the page, HTML, to FILE.", value="FILE")],
    key: AuthorsKey = None,
    force: Force = False,
) -> None:
    """Write a receipt as a page of one screen, after it was checked as `verify` does.

    Beside what is proved, recorded, audited and claimed it has the headings of two guides, each
    with what the receipt says of it: NIST SP 800-226 and EDPB Opinion 28/2024.

    Example: dp-attest receipt page receipt.json --out receipt.html

    Exit status: 0 written; 1 written, and a line says PROBLEM; 2 refused; 130 interrupted.
    """
    from accountant.files import write_atomically
    from accountant.reports.receipt_page import receipt_page

    result, _ = checked(receipt, key)
    write_atomically(Path(out), receipt_page(result, is_key_known=key is not None))
    if result.problems:
        raise typer.Exit(UNPROVED)


def card(receipt: ReceiptFile, key: AuthorsKey = None) -> None:
    """Print a block for a model card (Markdown), after the receipt was checked.

    Example: dp-attest receipt card receipt.json >> README.md

    Exit status: 0 printed; 1 printed, and the receipt has a problem; 2 refused; 130 interrupted.
    """
    from accountant.publishing.model_card import model_card

    result, document = checked(receipt, key)
    print(model_card(result, document), end="")
    if result.problems:
        raise typer.Exit(UNPROVED)


app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""One signed document on a release: what was promised, proved, audited, spent, published.

`make` joins it, `verify` checks it, `page` and `card` show it.""",
)
for _command in (make, verify, page, card):
    app.command(_command.__name__)(_command)
