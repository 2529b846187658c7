"""Says in one screen what of a receipt is proved, recorded and audited, and what is only claimed.

Each line has one of five headings.  What a heading says of its line:

- SIGNED: no byte was changed since the holder of the key signed.
- PROVED: computed again here, in ball arithmetic, from the definition of the plan.
- RECORDED: entries of a book that are one unbroken chain; that nothing was left out is not shown.
- AUDITED: a test tried to falsify a claim of the code.  To survive proves nothing.
- CLAIMED: the author says so, and nothing here checks it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from .document import Receipt
from .plan_parts import shown_parts, words_of_claims

WIDTH, MARGIN = 80, 10
SHOWN = 3  # parts, audits, files and reasons that are listed; then their number
DIGITS = 10
PART_WIDTH, SENTENCE_WIDTH = 90, 400  # characters of a part of the plan, and of a sentence


def receipt_words(receipt: Receipt, is_key_known: bool = False) -> str:
    """Return the screen; ``is_key_known`` says that the reader gave the author's key."""
    lines = []
    for heading, sentence in receipt_lines(receipt, is_key_known):
        printable = "".join(letter if letter.isprintable() else "?" for letter in sentence)
        lines += textwrap.wrap(
            printable, WIDTH, initial_indent=f"{heading:<{MARGIN}}",
            subsequent_indent=" " * MARGIN, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines)


def receipt_lines(receipt: Receipt, is_key_known: bool) -> Iterator[tuple[str, str]]:
    """Yield the headings of a receipt, each with one sentence, of a few hundred letters at most."""
    for heading, sentence in all_lines(receipt, is_key_known):
        yield heading, cut(sentence, SENTENCE_WIDTH)


def all_lines(receipt: Receipt, is_key_known: bool) -> Iterator[tuple[str, str]]:
    """Yield the headings of a receipt, each with one sentence of any length."""
    predicate, verdict, problems = receipt.predicate, receipt.verdict, receipt.problems
    whose = "the key that you gave" if is_key_known else "compare it with the author's, or give it"
    day = predicate["made"][:19]
    yield "SIGNED", f"by {receipt.author} on {day}; {receipt.fingerprint} ({whose})"
    yield from (("PROBLEM", problem) for problem in problems[:SHOWN])
    if len(problems) > SHOWN:
        yield "PROBLEM", f"and {len(problems) - SHOWN:,} more"
    parts = shown_parts(receipt.plan)
    if verdict is not None and verdict.word != "NOT PROVED":
        lower = f"at least {short(verdict.lower, -1)} and " * (verdict.word == "PROVED")
        ends = f"{lower}at most {short(verdict.upper, 1)}"
        yield "PROVED", f"epsilon is {ends} at delta {verdict.delta!r}, of {listed(parts)}"
    else:
        yield "CLAIMED", f"the plan is {listed(parts)}; its epsilon is not proved here"
    book = predicate["book"]
    if book is not None:
        count, (head, *checkpoint) = len(book["entries"]), book["head"].split("\n")
        end = f"the head that {receipt.author} signed" if checkpoint else f"the head {head[:16]}"
        is_opening = json.loads(book["entries"][0])["kind"] == "dataset"
        start = "from its opening on" if is_opening else "from a later entry on"
        sentence = f"{count:,} entries of the book {book['id']} with {receipt.answers:,} answers, "
        sentence += f"one chain up to {end}; they charge the plan to {book['dataset']!r}, {start}"
        yield "RECORDED", sentence
    audits = predicate["audits"]
    rows = [(row, is_same_code(audit, predicate["code"]))
            for audit in audits for row in audit["findings"]]  # fmt: skip
    yield from (("AUDITED", finding_words(*row)) for row in rows[:SHOWN])
    if len(rows) > SHOWN:
        survived = sum(row["outcome"] == "survived" for row, _ in rows[SHOWN:])
        yield "AUDITED", f"{len(rows) - SHOWN:,} more subjects, of which {survived:,} survived"
    if not rows:
        yield "CLAIMED", "the code releases what the plan says: no audit is in the receipt"
    yield from (("CLAIMED", sentence) for sentence in claimed_words(receipt))


def finding_words(row: dict[str, Any], same_code: bool) -> str:
    """Return what an audit found of one subject, and what it did not look at."""
    claim = row["claim"]["epsilon"]
    against = "" if claim is None else f" a claim of epsilon {short(claim, 1)}"
    bound = row["epsilon_lower"]
    confidence = short(row["confidence"], -1)
    at_least = (
        "" if bound is None else f", epsilon at least {short(bound, -1)} at confidence {confidence}"
    )
    where = "" if same_code else ", of code that is not the receipt's"
    reasons = [reason["kind"] for reason in row["not_tested"]]
    return (
        f"{cut(row['subject'], PART_WIDTH)}: {row['outcome']}{against} in {row['runs'] or 0:,} "
        f"runs{at_least}{where}; not tested: {listed(reasons)}"
    )


def is_same_code(audit: dict[str, Any], files: list[dict[str, Any]]) -> bool:
    """Return whether an audit names the digest of a file of the receipt as its code."""
    return any(file["sha256"] in audit["code"] for file in files)


def claimed_words(receipt: Receipt) -> Iterator[str]:
    """Yield what the author says and nothing checks."""
    predicate = receipt.predicate
    if claims := words_of_claims(receipt.plan):
        yield claims
    book, training, files = predicate["book"], predicate["training"], predicate["code"]
    promised = predicate["promised"]
    if promised is not None:
        protects = "" if book is None else f" for {book['protects']}"
        limit = f"epsilon {short(promised['epsilon'], 1)} at delta {short(promised['delta'], 1)}"
        yield f"{limit} was promised{protects}"
    if book is not None:
        yield (
            f"{book['dataset']!r} spent epsilon {short(book['spent'], 1)} in all, and nothing "
            "else was released of these data"
        )
    if training is not None:
        run = training["run"]
        yield (
            f"batches were drawn as {run['loader']!r}, of {run['examples']:,} records, with the "
            f"noise multiplier {short(run['noise'], -1)}"
        )
    published = [name for name in receipt.subjects if name != "plan"]
    if published:
        yield f"{listed(published)} came of the plan (digests are in the file)"
    if files:
        names = [file["name"] for file in files]
        yield f"{listed(names)} made the release"
    packages = predicate["environment"]["packages"]
    versions = [f"{name} {packages[name]}" for name in ("python", "dp-attest") if name in packages]
    yield f"it was made with {listed(versions)} and {max(len(packages) - 2, 0)} other packages"


def listed(names: list[str]) -> str:
    """Return names in words, the first few and how many more there are."""
    others = f" and {len(names) - SHOWN:,} more" * (len(names) > SHOWN)
    return (", ".join(cut(name, PART_WIDTH) for name in names[:SHOWN]) + others) or "nothing"


def cut(text: str, width: int) -> str:
    """Return a text, or its beginning where it is long."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def short(value: float, side: int) -> str:
    """Return a number in few digits, on the side of the number that is above (1) or below (-1)."""
    text = f"{value:.{DIGITS}g}"
    if side * (float(text) - value) >= 0:
        return text
    return f"{value * (1 + side * 10.0 ** (1 - DIGITS)):.{DIGITS}g}"
