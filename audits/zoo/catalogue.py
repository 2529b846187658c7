"""All specimens of the zoo: small mechanisms and algorithms on which the audits are tested.

Some are honest and the others are broken on purpose, and for each it is known which.  An audit is
wrong if it misjudges one.
"""

from __future__ import annotations

from audits.zoo.broken import (
    algorithms,
    bookkeeping,
    containers,
    drawing,
    kept_parts,
    missed,
    noise,
    selection,
    side_channels,
)
from audits.zoo.honest import mechanisms, programs
from audits.zoo.specimen import Specimen

MECHANISMS: tuple[Specimen, ...] = tuple(
    specimen
    for kind in (noise, selection, side_channels, algorithms, mechanisms)
    for specimen in kind.specimens()
)
PROGRAMS: tuple[Specimen, ...] = tuple(
    specimen
    for kind in (kept_parts, containers, bookkeeping, drawing, programs)
    for specimen in kind.specimens()
)
SPECIMENS = MECHANISMS + PROGRAMS
# Those that are known to survive an audit are no part of its score.
MISSED: tuple[Specimen, ...] = tuple(missed.specimens())
# The command line lists these: they are broken mechanisms, and caught by guesses or by replay.
ZOO: tuple[Specimen, ...] = tuple(
    specimen
    for specimen in MECHANISMS
    if not specimen.honest and specimen.caught_by in {"guess test", "replay", "privacy losses"}
)
