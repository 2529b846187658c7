"""The HTML page of a receipt: one screen that says what is proved, recorded, audited and claimed.

Beside it stand the headings of two guides, each with what the receipt says of it: the pyramid of
NIST SP 800-226, and the elements by which EDPB Opinion 28/2024 asks to assess an AI model.  A
heading of which the receipt says nothing says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from accountant.formatting import format_short, format_upper
from accountant.reports.html_document import render
from accountant.training.statement import FALSE_POSITIVES, rates_of_epsilon
from accountant.verifier import Receipt
from accountant.verifier.receipt_words import receipt_lines, short

NOTHING = "not in the receipt"
DIGITS = 4


class Heading(NamedTuple):
    """A heading of a guide, and what the receipt says of it."""

    name: str
    says: str = NOTHING


def receipt_page(receipt: Receipt, is_key_known: bool = False) -> str:
    """Return a receipt that was checked as one HTML page, which asks no server for anything.

    Parameters
    ----------
    receipt : Receipt
        What `accountant.verifier.check_receipt` returned.
    is_key_known : bool
        Whether it was checked with the author's key, known from elsewhere.

    Returns
    -------
    str
        The page.
    """
    verdict = receipt.verdict
    is_proved = verdict is not None and verdict.word != "NOT PROVED"
    return render(
        "receipt.html",
        receipt=receipt,
        epsilon=format_upper(verdict.upper, DIGITS) if verdict is not None and is_proved else "",
        delta="" if verdict is None else format_short(verdict.delta),
        lines=list(receipt_lines(receipt, is_key_known)),
        nist=list(pyramid(receipt)),
        edpb=list(elements(receipt)),
    )


def pyramid(receipt: Receipt) -> Iterator[Heading]:
    """Yield the blocks of the differential privacy pyramid of NIST SP 800-226, from its top."""
    book, training = receipt.predicate["book"], receipt.predicate["training"]
    yield Heading("Privacy parameters ε, δ", proved_words(receipt))
    if book is not None:
        yield Heading("Unit of privacy", f"{book['protects']} (claimed)")
    elif training is not None:
        yield Heading("Unit of privacy", f"one record, {training['relation']} (claimed)")
    else:
        yield Heading("Unit of privacy")
    yield Heading("Algorithms and correctness", audited_words(receipt))
    yield Heading("Utility")
    yield Heading("Bias")
    signed = book is not None and "\n" in book["head"]
    by_roles = "entries of the book are signed by people with roles (recorded)"
    yield Heading("Access control", by_roles if signed else NOTHING)
    yield Heading("Trust models")
    yield Heading("Side channels", untested_words(receipt))
    yield Heading("Data collection exposure")


def elements(receipt: Receipt) -> Iterator[Heading]:
    """Yield the elements of EDPB Opinion 28/2024 on whether a model is anonymous."""
    training = receipt.predicate["training"]
    run = "no model: a plan of releases" if training is None else (
        f"DP-SGD, noise multiplier {short(training['run']['noise'], -1)}, batches "
        f"{training['run']['loader']} (claimed)"
    )  # fmt: skip
    yield Heading("AI model design", run)
    yield Heading("AI model analysis", audited_words(receipt))
    yield Heading("AI model testing and resistance to attacks", resistance_words(receipt))
    names = ("plan", "proof", "audits", "book", "training", "code")
    parts = [name for name in names if receipt.predicate[name]]
    yield Heading("Documentation", f"this receipt holds: {', '.join(parts)}")


def proved_words(receipt: Receipt) -> str:
    """Return what was proved of epsilon."""
    verdict = receipt.verdict
    if verdict is None or verdict.word == "NOT PROVED":
        return "not proved"
    upper = format_upper(verdict.upper, DIGITS)
    return f"ε at most {upper} at δ {format_short(verdict.delta)} (proved)"


def audited_words(receipt: Receipt) -> str:
    """Return how many audited subjects survived."""
    rows = [row for audit in receipt.predicate["audits"] for row in audit["findings"]]
    survived = sum(row["outcome"] == "survived" for row in rows)
    return f"{survived} of {len(rows)} audited subjects survived (audited)" if rows else "no audit"


def untested_words(receipt: Receipt) -> str:
    """Return what no audit looked at."""
    rows = [row for audit in receipt.predicate["audits"] for row in audit["findings"]]
    kinds = dict.fromkeys(reason["kind"] for row in rows for reason in row["not_tested"])
    return f"not tested: {', '.join(kinds)}" if kinds else "no audit"


def resistance_words(receipt: Receipt) -> str:
    """Return how far the proved epsilon bounds attacks, and what audits found."""
    verdict = receipt.verdict
    if verdict is None or verdict.word == "NOT PROVED":
        return f"no bound is proved; {audited_words(receipt)}"
    advantage, power = rates_of_epsilon(verdict.upper, verdict.delta)
    return (
        f"membership inference finds at most {format_upper(100 * power, 3)} % of members at "
        f"{100 * FALSE_POSITIVES:g} % false alarms, advantage at most {format_upper(advantage, 3)} "
        f"(from the proved ε); {audited_words(receipt)}; other attacks were not run"
    )
