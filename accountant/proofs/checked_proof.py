"""A proof that the checker accepted here and now, of one plan at one delta.

Reports and books take a `CheckedProof`, never the words of a file: there is none unless the checker
proved the file, and its plan and delta are those that are asked about.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from accountant.errors import ParameterError, UnsupportedPlan
from accountant.files import check_writable
from accountant.formatting import format_lower, format_short, format_upper
from accountant.plans.plan import Plan, as_plan
from accountant.serialisation.plan_json import to_dict

if TYPE_CHECKING:
    from accountant.verifier import Verdict

MOST_BYTES = 1 << 20  # of a proof; what is longer is not read to its end
UPPER, NOT_PROVED = "PROVED UPPER", "NOT PROVED"
DIGITS = 12
MOST_SHOWN = 8  # of a list in a plan
Proof = bytes | str | os.PathLike[str]  # the bytes of a proof, or where its file is


@final
@dataclass(frozen=True, slots=True)
class CheckedProof:
    """A proof of one plan at one delta; to make one is to check it.

    Raises `ParameterError` where the file is no proof, is of another plan or delta, or does not
    prove its claim.
    """

    plan: Plan
    delta: float
    document: bytes = field(repr=False)
    verdict: Verdict = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", verdict_on(self.document))
        self.refuse_other(self.plan, self.delta)
        if self.verdict.word == NOT_PROVED:
            allowed = "one that the checker accepts: write it again with `certify`"
            raise ParameterError("proof", f"{NOT_PROVED}: {self.verdict.reason}", allowed)

    def refuse_other(self, plan: Plan, delta: float) -> None:
        """Raise `ParameterError` unless the file is of this plan and this delta."""
        verdict = self.verdict
        if not same_plan(verdict.plan, to_dict(as_plan(plan))):
            allowed = "of this plan: `python -m accountant certify PLAN --proof FILE` writes one"
            raise ParameterError(
                "proof", f"a proof of {' + '.join(shown_parts(verdict.plan)) or 'nothing'}", allowed
            )
        if verdict.delta != delta:
            at = shown_delta(delta)
            allowed = f"of epsilon at delta {at}: `certify --delta {at}` writes one"
            raise ParameterError("proof", f"a proof at delta {shown_delta(verdict.delta)}", allowed)

    @property
    def epsilon(self) -> float:
        """Return the upper end that was proved."""
        return self.verdict.upper

    @property
    def claim(self) -> str:
        """Return what was proved, in words."""
        return f"Checked with ball arithmetic: {claimed_words(self.verdict)}"

    @property
    def words(self) -> str:
        """Return what was proved, and the digest of the file."""
        return f"{self.claim} (SHA-256 of the proof: {self.verdict.digest})."

    def facts(self) -> dict[str, Any]:
        """Return what was proved as plain values."""
        one = self.verdict
        return {
            "sha256": one.digest, "verdict": one.word, "lower": one.lower, "upper": one.upper,
            "delta": one.delta,
        }  # fmt: skip


def checked_proof(plan: Plan, delta: float, proof: Proof | CheckedProof) -> CheckedProof:
    """Return the proof of a plan at ``delta``, checked unless it was, or raise `ParameterError`."""
    if isinstance(proof, CheckedProof):
        proof.refuse_other(plan, delta)
        return proof
    return CheckedProof(plan, delta, read_proof(proof))


def checked_target(proof: str | os.PathLike[str]) -> Path:
    """Return where a proof is to be written, before what it proves is computed."""
    if not isinstance(proof, str | os.PathLike):
        raise ParameterError("proof", proof, "the path of a file")
    check_writable({"proof": os.fspath(proof)})
    return Path(proof)


def proof_of_claim(plan: Plan, delta: float, lower: float, upper: float) -> CheckedProof:
    """Return a new proof of a claim; `UnsupportedPlan` where the checker does not accept it."""
    refuse_without_flint()
    from accountant.proofs.writer import write_proof

    document = write_proof(plan, delta, lower, upper)
    try:
        return CheckedProof(plan, delta, document)
    except ParameterError as error:
        raise UnsupportedPlan(plan, "the checker of proofs", str(error.value)) from None


def check_claim(plan: Plan, delta: float, lower: float, upper: float) -> Verdict:
    """Write the proof of a claim and check it; where no road proves it, the verdict says so."""
    refuse_without_flint()
    from accountant.proofs.writer import write_proof
    from accountant.verifier import Verdict

    try:
        return verdict_on(write_proof(plan, delta, lower, upper))
    except UnsupportedPlan as none:
        return Verdict(NOT_PROVED, none.instead, lower, upper, delta, to_dict(plan), "")


def refuse_without_flint() -> None:
    """Raise `ParameterError` where python-flint, which the checker needs, is not installed."""
    try:
        import flint  # noqa: F401  # a broken installation counts as none
    except ImportError:
        allowed = 'used where python-flint is installed (pip install "dp-attest[verify]")'
        raise ParameterError("the checker of proofs", "a Python without it", allowed) from None


def verdict_on(document: bytes) -> Verdict:
    """Return what the checker says of a proof; `ParameterError` where it is none."""
    refuse_without_flint()
    from accountant.verifier import ProofError, verify

    try:
        return verify(document)
    except (ProofError, MemoryError) as error:
        why = str(error) or "it needs more memory than there is"
        size = f"{'at least ' * (len(document) > MOST_BYTES)}{len(document):,} bytes"
        allowed = f"a proof ({why}); `certify --proof FILE` writes one"
        raise ParameterError("proof", size, allowed) from None


def read_proof(proof: Proof) -> bytes:
    """Return the bytes of a proof, at most one more than a proof may have."""
    if isinstance(proof, bytes):
        return proof[: MOST_BYTES + 1]
    if not isinstance(proof, str | os.PathLike):
        raise ParameterError("proof", proof, "the bytes of a proof, or the path of its file")
    path = Path(proof)
    try:
        if path.exists() and not path.is_file():  # a pipe could make its reader wait for ever
            raise ParameterError("proof", str(proof), "a file")
        with open(path, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise ParameterError("proof", str(proof), f"a file that can be read ({why})") from None


def claimed_words(verdict: Verdict) -> str:
    """Return what a proof claims; of a checked one what was proved."""
    least = f"at least {format_lower(verdict.lower, DIGITS)} and " * (verdict.word != UPPER)
    return (
        f"epsilon of this plan at delta {shown_delta(verdict.delta)} is {least}at most "
        f"{format_upper(verdict.upper, DIGITS)}"
    )


def shown_delta(delta: float) -> str:
    """Return a delta in its short form where that is exact."""
    short = format_short(delta)
    return short if float(short) == delta else repr(delta)


def same_plan(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two plans as plain values release the same, as often, in whatever order.

    What a plan costs does not depend on the order of its parts, nor on how sequences and
    repetitions group them.
    """
    each = ({_hashable(part): n for part, n in counted_parts(plan)} for plan in (one, other))
    return next(each) == next(each)


def shown_parts(plan: dict[str, Any]) -> list[str]:
    """Return the parts of a plan as they are printed in Python, and how often each is released."""
    return [f"{count:,} x {_shown(part)}" for part, count in counted_parts(plan)]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        fields = [f"{name}={_shown(one)}" for name, one in value.items() if name != "kind"]
        return f"{value.get('kind')}({', '.join(fields)})"
    if isinstance(value, list):
        some = ", ".join(map(_shown, value[:MOST_SHOWN]))
        return f"[{some}{', ...' * (len(value) > MOST_SHOWN)}]"
    return repr(value)


def counted_parts(plan: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """Return the different parts of a plan as plain values, and how often each is released."""
    counts: Counter[Any] = Counter()
    parts: dict[Any, dict[str, Any]] = {}
    for part, count in _parts(plan, 1):
        if count:
            counts[key := _hashable(part)] += count
            parts.setdefault(key, part)
    return [(part, counts[key]) for key, part in parts.items()]


def _parts(plan: dict[str, Any], count: int) -> Iterator[tuple[dict[str, Any], int]]:
    if plan["kind"] == "Sequential":
        for part in plan["parts"]:
            yield from _parts(part, count)
    elif plan["kind"] == "Repeat":
        yield from _parts(plan["part"], count * plan["count"])
    else:
        yield plan, count


def _hashable(value: Any) -> Any:
    """Return a plain value as one that hashes; 4 and 4.0 are one number, 1 and True are not."""
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(one)) for name, one in value.items()))
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (bool, value) if isinstance(value, bool) else value
