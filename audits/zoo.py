"""Honest and deliberately broken specimens; an audit that errs on one is broken itself."""

from __future__ import annotations

from audits import zoo_algorithms, zoo_channels, zoo_honest, zoo_noise, zoo_selection
from audits.specimen import Query, Specimen
from audits.zoo_algorithms import (
    CHANGED,
    RECORDS,
    AsLongAsItTakes,
    Gossip,
    HalfTheSensitivity,
    NoiseThief,
    Peek,
    _Sum,
)

__all__ = [
    "CHANGED",
    "RECORDS",
    "SPECIMENS",
    "ZOO",
    "AsLongAsItTakes",
    "Gossip",
    "HalfTheSensitivity",
    "NoiseThief",
    "Peek",
    "Query",
    "Specimen",
    "_Sum",
]

SPECIMENS: tuple[Specimen, ...] = tuple(
    one
    for family in (zoo_noise, zoo_selection, zoo_channels, zoo_algorithms, zoo_honest)
    for one in family.specimens()
)
# what the command line lists: broken, and caught by guesses or by replay
ZOO: tuple[Specimen, ...] = tuple(
    one
    for one in SPECIMENS
    if not one.honest and one.caught_by in {"guess test", "replay", "privacy losses"}
)
