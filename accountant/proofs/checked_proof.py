"""A proof of one plan at one delta that the checker has accepted in this process.

Reports and books take a `CheckedProof`, never what a file says: the object can only be made if the
checker proves the file, and if its plan and delta are those that are asked about.  The checker,
`accountant.verifier`, returns a verdict: a word, the interval of epsilon, and the plan of the file
as plain values.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from accountant.errors import ParameterError, UnsupportedPlan
from accountant.files import check_writable
from accountant.formatting import format_lower, format_short, format_upper
from accountant.plans.plan import Plan, as_plan
from accountant.proofs.claimed_losses import proof_plan
from accountant.proofs.no_method import MOST_BYTES, without_proof
from accountant.verifier.plan_parts import is_deep, same_plan, shown_parts, words_of_claims

if TYPE_CHECKING:
    from accountant.verifier import Verdict

UPPER, NOT_PROVED = "PROVED UPPER", "NOT PROVED"  # words of a verdict
DIGITS = 12  # significant digits of the ends in words
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
    document: bytes = field(repr=False)  # the bytes of the file
    verdict: Verdict = field(init=False, repr=False)  # what the checker says of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", verdict_on(self.document))
        self.refuse_other(self.plan, self.delta)
        if self.verdict.word == NOT_PROVED:
            allowed = "one that the checker accepts: write it again with `certify`"
            raise ParameterError("proof", f"{NOT_PROVED}: {self.verdict.reason}", allowed)

    def refuse_other(self, plan: Plan, delta: float) -> None:
        """Raise `ParameterError` unless the file is of this plan and this delta."""
        verdict = self.verdict
        if not same_plan(verdict.plan, proof_plan(as_plan(plan), decimal=verdict.delta == 0)):
            allowed = "of this plan: `dp-attest account certify PLAN --out FILE` writes one"
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
        """Return what was proved, the digest of the file, and whose claims it rests on."""
        said = f"{self.claim} (SHA-256 of the proof: {self.verdict.digest})"
        return f"{said}; {self.claims}." if self.claims else f"{said}."

    @property
    def claims(self) -> str:
        """Return in words whose losses are taken as the mechanisms claim; "" where none is."""
        return words_of_claims(self.verdict.plan)

    def facts(self) -> dict[str, Any]:
        """Return what was proved as plain values."""
        verdict = self.verdict
        return {
            "sha256": verdict.digest,
            "verdict": verdict.word,
            "lower": verdict.lower,
            "upper": verdict.upper,
            "delta": verdict.delta,
        }


def checked_proof(plan: Plan, delta: float, proof: Proof | CheckedProof) -> CheckedProof:
    """Return the proof of a plan at ``delta``, checked unless it was, or raise `ParameterError`."""
    if isinstance(proof, CheckedProof):
        proof.refuse_other(plan, delta)
        return proof
    return CheckedProof(plan, delta, read_proof(proof))


def checked_target(proof: str | os.PathLike[str]) -> Path:
    """Return the path for a new proof, checked to be writable before the proof is computed."""
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
        why = without_proof(str(error.value))
        raise UnsupportedPlan(plan, "the checker of proofs", why) from None


def check_claim(plan: Plan, delta: float, lower: float, upper: float) -> Verdict:
    """Write the proof of a claim and check it; where no method proves it, the verdict says so."""
    refuse_without_flint()
    from accountant.proofs.writer import write_proof
    from accountant.verifier import Verdict

    try:
        return verdict_on(write_proof(plan, delta, lower, upper))
    except UnsupportedPlan as none:
        fields = proof_plan(plan, decimal=delta == 0)
        return Verdict(NOT_PROVED, none.instead, lower, upper, delta, fields, "")


def refuse_without_flint() -> None:
    """Raise `ParameterError` where python-flint, which the checker needs, is not installed."""
    try:
        import flint  # noqa: F401  # a broken installation counts as none
    except ImportError:
        allowed = "used where python-flint is installed (pip install python-flint)"
        raise ParameterError("the checker of proofs", "a Python without it", allowed) from None


def verdict_on(document: bytes) -> Verdict:
    """Return what the checker says of a proof; `ParameterError` where it is none."""
    refuse_without_flint()
    from accountant.verifier import ProofError, verify
    from accountant.verifier.document import need

    try:
        verdict = verify(document)
        need(not is_deep(verdict.plan), "its plan is nested too deep", ProofError)
    except (ProofError, MemoryError) as error:
        why = str(error) or "it needs more memory than there is"
        size = f"{'at least ' * (len(document) > MOST_BYTES)}{len(document):,} bytes"
        allowed = f"a proof ({why}); `certify --out FILE` writes one"
        raise ParameterError("proof", size, allowed) from None
    return verdict


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
    """Return in words what a proof claims, or what was proved if it was checked."""
    lower_clause = f"at least {format_lower(verdict.lower, DIGITS)} and " * (verdict.word != UPPER)
    return (
        f"epsilon of this plan at delta {shown_delta(verdict.delta)} is {lower_clause}at most "
        f"{format_upper(verdict.upper, DIGITS)}"
    )


def shown_delta(delta: float) -> str:
    """Return a delta in its short form where that is exact."""
    short = format_short(delta)
    return short if float(short) == delta else repr(delta)
