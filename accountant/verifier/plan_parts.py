"""Compares and prints plans that are given as plain values: tables, lists and numbers of a file.

A plan's dict has its class as ``kind`` and one key for each field.  The file may come from a
stranger, so that every field may be missing or have any type.  Most functions recurse: callers
first refuse plans that are deep (`is_deep`).  Counts are not checked here: the checker of proofs
proves nothing of a plan with a count that is no whole number from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

CLAIMED = "Claimed"  # the kind of a mechanism that stands with the loss that it claims
WHICH = "`dp-attest account verify --mechanisms` says which claims it proves"
MOST_SHOWN = 8  # elements of a list that are printed
MOST_LEVELS = 200  # levels of nested tables and lists; recursion over so many is safe
OPTIONAL_FIELDS = {"relation"}  # of a claim, besides its kind, mechanism and loss


def same_plan(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether two plans have the same parts, each released as often, in any order.

    What a plan costs does not depend on the order of its parts, nor on how sequences and
    repetitions group them.
    """
    first_counts, second_counts = (
        {plain_key(part): n for part, n in counted_parts(plan)} for plan in (first, second)
    )
    return first_counts == second_counts


def shown_parts(plan: dict[str, Any]) -> list[str]:
    """Return the parts of a plan as they are printed in Python, and how often each is released."""
    return [f"{count:,} x {shown(part)}" for part, count in counted_parts(plan)]


def shown(value: Any) -> str:
    """Return a plain value as it is printed in Python; a claim with the loss that is claimed."""
    match value:
        case {"kind": "Claimed", "mechanism": mechanism, "loss": loss, **rest} if {
            *rest
        } <= OPTIONAL_FIELDS:
            relation = "".join(f", {field}" for field in rest.values())
            return f"{shown(mechanism)} as claimed ({shown(loss)}{relation})"
        case dict():
            fields = [f"{name}={shown(field)}" for name, field in value.items() if name != "kind"]
            return f"{value.get('kind')}({', '.join(fields)})"
        case list():
            listed = ", ".join(map(shown, value[:MOST_SHOWN]))
            return f"[{listed}{', ...' * (len(value) > MOST_SHOWN)}]"
    return repr(value)


def is_deep(plan: Any) -> bool:
    """Return whether tables and lists are nested in more than `MOST_LEVELS` levels."""
    level = [plan]
    for _ in range(MOST_LEVELS):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [node for children in inner for node in children if isinstance(node, dict | list)]
        if not level:
            return False
    return True


def counted_parts(plan: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """Return the different parts of a plan as plain values, and how often each is released."""
    counts: Counter[Any] = Counter()
    parts: dict[Any, dict[str, Any]] = {}
    for part, count in _parts(plan, 1):
        if count:
            counts[key := plain_key(part)] += count
            parts.setdefault(key, part)
    return [(part, counts[key]) for key, part in parts.items()]


def _parts(plan: Any, count: int) -> Iterator[tuple[Any, int]]:
    """Yield the parts of nested sequences and repetitions with counts; equal parts may recur."""
    match plan:
        case {"kind": "Sequential", "parts": list(parts), **rest} if not rest:
            for part in parts:
                yield from _parts(part, count)
        case {"kind": "Repeat", "part": part, "count": int(repetitions), **rest} if not rest:
            yield from _parts(part, count * repetitions)
        case _:
            yield plan, count


def plain_key(value: Any) -> Any:
    """Return a plain value as one that hashes; 4 and 4.0 are one number, 1 and True are not."""
    if isinstance(value, dict):
        return frozenset((name, plain_key(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(map(plain_key, value))
    return (bool, value) if isinstance(value, bool) else value


def claims_of(plan: Any) -> Iterator[dict[str, Any]]:
    """Yield the different claims in the plan of a proof, in the order of the file.

    The table of a claim's mechanism is not searched: the proof is not about what stands there.
    """
    pending, yielded_keys = [plan], set()  # the next to be searched is the last of ``pending``
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            is_claim = node.get("kind") == CLAIMED
            if is_claim and plain_key(node) not in yielded_keys:
                yielded_keys.add(plain_key(node))
                yield node
            inside = [value for key, value in node.items() if not (is_claim and key == "mechanism")]
            pending += reversed(inside)
        elif isinstance(node, list):
            pending += reversed(node)


def words_of_claims(plan: Any) -> str:
    """Return a sentence that names the mechanisms whose losses are claims; "" without a claim."""
    kinds = list(dict.fromkeys(kind_of(claim) for claim in claims_of(plan)))
    if not kinds:
        return ""
    listed = ", ".join(kinds[:-1]) + " and " * (len(kinds) > 1) + kinds[-1]
    subject = "that mechanism claims" if len(kinds) == 1 else "those mechanisms claim"
    return f"the losses of {listed} are as {subject}: {WHICH}"


def kind_of(claim: dict[str, Any]) -> str:
    """Return the name of a claim's mechanism; the file may hold anything in its place."""
    mechanism = claim.get("mechanism")
    return str(mechanism.get("kind") if isinstance(mechanism, dict) else mechanism)
