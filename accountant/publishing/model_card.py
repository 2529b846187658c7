"""A block on privacy for a model card, in Markdown, from a receipt that was checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from accountant.formatting import escape_control, format_upper
from accountant.training.statement import FALSE_POSITIVES, rates_of_epsilon
from accountant.verifier import Receipt
from accountant.verifier.receipt_words import receipt_lines


def model_card(receipt: Receipt, document: bytes) -> str:
    """Return the block; ``document`` are the bytes of the receipt, whose digest it names."""
    return "".join(f"{line}\n" for line in card_lines(receipt, document))


def card_lines(receipt: Receipt, document: bytes) -> Iterator[str]:
    """Yield the lines: what is proved, recorded, audited and claimed, and what attacks can do."""
    digest, verdict = hashlib.sha256(document).hexdigest(), receipt.verdict
    yield from ("## Differential privacy", "")
    for heading, sentence in receipt_lines(receipt, is_key_known=False):
        # What a file says must not become markup.
        text = "".join(f"\\{letter}" if letter in r"\`*_[]<>|#" else letter for letter in sentence)
        yield f"- **{heading.capitalize()}**: {escape_control(text)}"
    if verdict is not None and verdict.word != "NOT PROVED":
        advantage, power = rates_of_epsilon(verdict.upper, verdict.delta)
        share = f"{format_upper(100 * power, 3)} % of members"
        yield (
            f"- **Attacks**: from the proved epsilon, membership inference has an advantage of at "
            f"most {format_upper(advantage, 3)}, and finds at most {share} at "
            f"{100 * FALSE_POSITIVES:g} % false alarms"
        )
    yield f"- **Receipt**: SHA-256 {digest}; `dp-attest-verify receipt.json` checks it"
