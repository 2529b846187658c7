"""All specimens of the zoo: small mechanisms and algorithms on which the audits are tested.

Some are honest and the others are broken on purpose, and for each it is known which.  An audit is
wrong if it misjudges one.
"""

from __future__ import annotations

from audits.zoo import algorithms as zoo_algorithms
from audits.zoo import honest as zoo_honest
from audits.zoo import noise as zoo_noise
from audits.zoo import selection as zoo_selection
from audits.zoo import side_channels as zoo_channels
from audits.zoo.specimen import Specimen

SPECIMENS: tuple[Specimen, ...] = tuple(
    specimen
    for family in (zoo_noise, zoo_selection, zoo_channels, zoo_algorithms, zoo_honest)
    for specimen in family.specimens()
)
# The command line lists these: they are broken, and caught by guesses or by replay.
ZOO: tuple[Specimen, ...] = tuple(
    specimen
    for specimen in SPECIMENS
    if not specimen.honest and specimen.caught_by in {"guess test", "replay", "privacy losses"}
)
