"""Tries to falsify everything below: guess test, exact densities, replay, bits, timing, a zoo."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.accuracy import Decoded, audit_accuracy
    from audits.atoms import audit_atoms
    from audits.bits import audit_bits
    from audits.claims import INDEPENDENT, RenyiLoss, Sensitivity, TradeoffLoss
    from audits.densities import exact
    from audits.families import Family, audit_family
    from audits.finding import Finding, Outcome
    from audits.gates import OffTranscript
    from audits.guess import audit
    from audits.pairs import Box, candidate_pairs, search_pairs
    from audits.replaying import Replayed, privacy_losses, replay
    from audits.scoring import score_zoo
    from audits.sensitivity import probe_sensitivity
    from audits.stopping import watch
    from audits.timing import audit_timing
    from audits.tracing import Traced, audit_tracing

# loaded when asked for: `python -m audits --help` should not wait for numpy
_HOME = {
    "Box": "pairs",
    "Decoded": "accuracy",
    "Family": "families",
    "Finding": "finding",
    "INDEPENDENT": "claims",
    "OffTranscript": "gates",
    "Outcome": "finding",
    "RenyiLoss": "claims",
    "Replayed": "replaying",
    "Sensitivity": "claims",
    "TradeoffLoss": "claims",
    "Traced": "tracing",
    "audit": "guess",
    "audit_accuracy": "accuracy",
    "audit_tracing": "tracing",
    "audit_atoms": "atoms",
    "audit_bits": "bits",
    "audit_family": "families",
    "audit_timing": "timing",
    "candidate_pairs": "pairs",
    "exact": "densities",
    "privacy_losses": "replaying",
    "probe_sensitivity": "sensitivity",
    "replay": "replaying",
    "score_zoo": "scoring",
    "search_pairs": "pairs",
    "watch": "stopping",
}
__all__ = [
    "INDEPENDENT",
    "Box",
    "Decoded",
    "Family",
    "Finding",
    "OffTranscript",
    "Outcome",
    "RenyiLoss",
    "Replayed",
    "Sensitivity",
    "Traced",
    "TradeoffLoss",
    "audit",
    "audit_accuracy",
    "audit_atoms",
    "audit_bits",
    "audit_family",
    "audit_timing",
    "audit_tracing",
    "candidate_pairs",
    "exact",
    "privacy_losses",
    "probe_sensitivity",
    "replay",
    "score_zoo",
    "search_pairs",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
