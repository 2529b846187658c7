"""For which neighbours a plan is stated, and the refusal of a plan whose parts do not agree.

Neighbours are the pairs of data sets that privacy compares: by a record that is added or removed,
replaced, or blanked.  The costs of two parts add up only where both are stated for the same
neighbours, or where those of one are neighbours of the other too.
"""

from __future__ import annotations

from typing import Any

from .document import ProofError, need

ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"
# A record is blanked and its place stays: a release then has the distribution that it has without
# the record, but the number of records is the same.
ZERO_OUT = "zero-out"
RELATIONS = (
    ADD_REMOVE,
    REPLACE_ONE,
    ZERO_OUT,
    "label-replace",
    "local-replace",
    "machine-replace",
)
# The neighbours of nodes of these kinds where the plan states none.
OF_KIND = {
    "AmplifiedMatrix": ADD_REMOVE,
    "RandomizedResponse": "local-replace",
    "SampledWithoutReplacement": REPLACE_ONE,
    "ShuffledEpoch": ZERO_OUT,
}
SAMPLES = "PoissonSampled", "RandomAllocation", "TruncatedPoisson"


def stated_neighbours(value: Any, depth: int) -> set[str]:
    """Return the neighbours that a node states, or those of its parts where it states none.

    The set has at most one element, and none where neither the node nor a part states any.  A
    value nested more than 200 deep is refused: a plan of 50 levels of nodes has fewer.
    """
    need(depth < 200, "a plan is nested at most 50 deep", ProofError)
    if not isinstance(value, dict):
        elements = value if isinstance(value, list) else ()
        return {relation for part in elements for relation in stated_neighbours(part, depth + 1)}
    of_parts = {
        relation for part in value.values() for relation in stated_neighbours(part, depth + 1)
    }
    kind = value.get("kind")
    if kind == "OnePass" and of_parts <= {ADD_REMOVE}:  # a removed record leaves its place empty
        of_parts = {ZERO_OUT}
    adds_records = value.get("by") == "value" or kind in SAMPLES
    default = ADD_REMOVE if adds_records else OF_KIND.get(str(kind), "")
    stated = str(value.get("relation") or default)
    agrees = of_parts <= relations_of_parts(kind, stated) if stated else len(of_parts) < 2
    need(agrees, "parts stated for different neighbours have no proof here")
    return {stated} if stated else of_parts


def relations_of_parts(kind: Any, stated: str) -> set[str]:
    """Return the neighbours for which the parts of a node may be stated."""
    if kind in SAMPLES:  # a sample compares the data with and without a record
        return {ADD_REMOVE, stated} - {REPLACE_ONE}
    if (kind, stated) == ("ShuffledEpoch", ZERO_OUT):
        return {ADD_REMOVE, ZERO_OUT}
    if (kind, stated) == ("Stated", "label-replace"):  # such neighbours are local ones too
        return {stated, "local-replace"}
    return {stated}
