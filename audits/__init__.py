"""Tries to falsify everything below: guess test, exact densities, replay, bits, timing, a zoo."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.algorithm_runs.recording import OffTranscript
    from audits.algorithm_runs.replaying import Replayed, privacy_losses, replay
    from audits.attacks.floating_point import audit_bits
    from audits.attacks.front import audit
    from audits.attacks.multiple_testing import Family, audit_family
    from audits.attacks.output_structure import audit_atoms
    from audits.attacks.pair_search import Box, candidate_pairs, search_pairs
    from audits.attacks.sensitivity import probe_sensitivity
    from audits.attacks.sequential import watch
    from audits.attacks.timing import audit_timing
    from audits.claims.claims import INDEPENDENT, RenyiLoss, Sensitivity, TradeoffLoss
    from audits.claims.findings import Finding, Outcome
    from audits.known_densities.hockey_stick import exact
    from audits.utility.accuracy import Decoded, audit_accuracy
    from audits.utility.tracing import Traced, audit_tracing
    from audits.zoo.scorecard import score_zoo

# loaded when asked for: `python -m audits --help` should not wait for numpy
_HOME = {
    "Box": "attacks.pair_search",
    "Decoded": "utility.accuracy",
    "Family": "attacks.multiple_testing",
    "Finding": "claims.findings",
    "INDEPENDENT": "claims.claims",
    "OffTranscript": "algorithm_runs.recording",
    "Outcome": "claims.findings",
    "RenyiLoss": "claims.claims",
    "Replayed": "algorithm_runs.replaying",
    "Sensitivity": "claims.claims",
    "TradeoffLoss": "claims.claims",
    "Traced": "utility.tracing",
    "audit": "attacks.front",
    "audit_accuracy": "utility.accuracy",
    "audit_tracing": "utility.tracing",
    "audit_atoms": "attacks.output_structure",
    "audit_bits": "attacks.floating_point",
    "audit_family": "attacks.multiple_testing",
    "audit_timing": "attacks.timing",
    "candidate_pairs": "attacks.pair_search",
    "exact": "known_densities.hockey_stick",
    "privacy_losses": "algorithm_runs.replaying",
    "probe_sensitivity": "attacks.sensitivity",
    "replay": "algorithm_runs.replaying",
    "score_zoo": "zoo.scorecard",
    "search_pairs": "attacks.pair_search",
    "watch": "attacks.sequential",
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
