"""Tries to falsify everything below: guess test, exact densities, replay, a broken zoo."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.densities import exact
    from audits.finding import Finding, Outcome
    from audits.gates import OffTranscript
    from audits.guess import audit
    from audits.replaying import Replayed, privacy_losses, replay

# loaded when asked for: `python -m audits --help` should not wait for numpy
_HOME = {
    "Finding": "finding",
    "OffTranscript": "gates",
    "Outcome": "finding",
    "Replayed": "replaying",
    "audit": "guess",
    "exact": "densities",
    "privacy_losses": "replaying",
    "replay": "replaying",
}
__all__ = [
    "Finding",
    "OffTranscript",
    "Outcome",
    "Replayed",
    "audit",
    "exact",
    "privacy_losses",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
