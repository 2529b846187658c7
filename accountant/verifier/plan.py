"""Reads a plan from a proof file and returns its releases: one function for each kind of node.

A plan is a tree of JSON tables that says what is released.  A release is a pair (P, Q) of
distributions of an output on two neighbours, as `releases` lists them.  The nodes that hold other
nodes are read here; losses and mechanisms are in `loss_nodes`, samples of the data in
`sample_nodes`.

Neighbours may differ in a group of records: (i, j) says that i of them are in P alone, and j in Q
alone.  `ALONE` is the group of one record, which is in P.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from .document import Fields, NoProof, ProofError, is_list, need
from .loss_nodes import LOSSES, LOSSES_OF_GROUPS
from .neighbours import RELATIONS, stated_neighbours
from .releases import ALONE, ANY_OF, NEGATIVE_BINOMIAL, POISSON, Group, Releases, any_of
from .sample_nodes import SAMPLES, once, poisson_sampled


def read_plan(plan: Any, *, decimal: bool) -> Releases:
    """Return what the plan releases.

    Where ``decimal`` is true a number is the decimal fraction that is printed, as 1/10 for 0.1;
    otherwise it is the exact value of the float that the printed number is read as.
    """

    def exact_number(text: str) -> Any:
        if float(text) == 0 and text.startswith("-"):
            return text  # no field takes -0.0, which is 0.0 in other letters
        return Fraction(text) if decimal else Fraction(float(text))

    tree = json.loads(json.dumps(plan), parse_float=exact_number)
    releases = releases_of(tree, 0, ALONE)
    stated_neighbours(tree, 0)
    return releases


def releases_of(value: Any, depth: int, group: Group) -> Releases:
    """Return what a node releases between data sets that differ in a group of records.

    Each release is counted as often as the node is repeated, by its field ``count``: a `Repeat`
    must have one, and other nodes have 1 by default.  The limits of depth and numbers bound the
    time of a check, and no theorem needs them.
    """
    fields = Fields(value, "the plan")
    kind = fields.take("kind", fits=lambda x: isinstance(x, str) and x)
    fields.name = kind[:40]
    count = fields.whole("count", 0, 10**15, *([] if kind == "Repeat" else [1]))
    need(depth < 50, "a plan is nested at most 50 deep", ProofError)
    if kind in HOLDERS and (group == ALONE or kind not in ALONE_ONLY):
        releases = HOLDERS[kind](Node(kind, fields, depth, group))
    else:
        releases = released_by_leaf(Node(kind, fields, depth, group))
    fields.done()
    few = len(releases) <= 10**5 and all(n * count <= 10**18 for n in releases.values())
    need(few, "too many releases")
    return Releases({release: n * count for release, n in releases.items() if count})


class Node(NamedTuple):
    """A node of a plan that is being read, and the group of records that is compared."""

    kind: str
    fields: Fields
    depth: int
    group: Group

    def read(self, part: Any, group: Group) -> Releases:
        """Return what a part of this node releases."""
        return releases_of(part, self.depth + 1, group)


def sequential(node: Node) -> Releases:
    """Read parts of which all are released, one after the other."""
    releases = Releases()
    for part in node.fields.take("parts", fits=is_list):
        releases.update(node.read(part, node.group))
    return releases


def parallel(node: Node) -> Releases:
    """Read parts of the data of which each user is in exactly one: the set of their releases."""
    node.fields.take("by", "index", fits=("index", "value").__contains__)
    need(not node.fields.take("moves", [], fits=is_list), "a record that moves has no proof here")
    parts = node.fields.take("parts", fits=is_list)
    return any_of([node.read(part, ALONE) for part in parts])


def grouped(node: Node) -> Releases:
    """Read a group of records that differ together.

    Some of the records are in P alone and the others in Q alone, with the same split in everything
    that the part releases.  Which split costs most is not known beforehand, so the group is read as
    the set of what every split releases.
    """
    part, size = node.fields.take("part"), node.fields.whole("size", 1, 10**6)
    # every split of a small group is read; of a large one, that all its records are in P
    fewest_in_p = 0 if 1 < size <= 64 else size
    need(fewest_in_p or size**2 * len(str(part)) < 3e7, "too many ways of a group")
    splits = [(in_p, size - in_p) for in_p in range(size, fewest_in_p - 1, -1)]
    return any_of([node.read(part, split) for split in splits])


def repeated(node: Node) -> Releases:
    """Read the part of a repetition; its count is read by `releases_of`, as that of any node."""
    return node.read(node.fields.take("part"), node.group)


def stated(node: Node) -> Releases:
    """Read a part that is stated for the neighbours which it names."""
    node.fields.take("relation", fits=RELATIONS.__contains__)
    return repeated(node)


def one_pass(node: Node) -> Releases:
    """Read one pass over batches: a record is in one of them (docs/proofs/shuffled_epoch.md)."""
    node.fields.whole("batches", 1, 2**53)
    return repeated(node)


def claimed(node: Node) -> Releases:
    """Read the loss that a mechanism claims; of the mechanism only the name of its kind is read."""
    if "relation" in node.fields.remaining:
        node.fields.take("relation", fits=RELATIONS.__contains__)
    mechanism = Fields(node.fields.take("mechanism"), "the mechanism of a claim")
    mechanism.take("kind", fits=lambda x: isinstance(x, str) and x)
    return node.read(node.fields.take("loss"), node.group)


def best_of_runs(node: Node) -> Releases:
    """Read a random number of runs of a part, of which the best is released: see `best_of_runs`.

    Where the law of the number stops surely after the first run, the part is released.
    """
    part, tries = node.read(node.fields.take("part"), ALONE), tries_of(node.fields.take("tries"))
    need(all(run[0] not in (ANY_OF, "best") for run in part), "no proof of the best of such runs")
    if tries[-1] == 1 and tries[0] != POISSON:
        return part
    return once(("best", tries, tuple(part.items())) if part else None)


def tries_of(value: Any) -> tuple[Any, ...]:
    """Read the law of the number of runs: its family and its parameters."""
    fields = Fields(value, "the tries")
    kind = fields.take("kind", fits=lambda x: isinstance(x, str) and x)
    tries: tuple[Any, ...]
    if kind == "PoissonTries":
        tries = POISSON, fields.number("mean", Fraction(1, 10**300), 10**15)
    else:
        need(kind in SHAPES, f"the number of runs {kind[:40]} has no proof here")
        shape = SHAPES[kind]
        if shape is None:
            shape = fields.number("shape", -1, 1000)
            need(shape > -1, "shape of the tries is wrong or out of range", ProofError)
        tries = NEGATIVE_BINOMIAL, shape, fields.number("stop", Fraction(1, 10**15), 1)
    fields.done()
    return tries


# The shape of each law of the negative binomial family; None: the law has a field for it.
SHAPES = {
    "NegativeBinomialTries": None,
    "GeometricTries": Fraction(1),
    "LogarithmicTries": Fraction(0),
}
HOLDERS: dict[str, Callable[[Node], Releases]] = {
    "Sequential": sequential,
    "Parallel": parallel,
    "Grouped": grouped,
    "Repeat": repeated,
    "Stated": stated,
    "OnePass": one_pass,
    "Claimed": claimed,
    "Repeated": best_of_runs,
}
ALONE_ONLY = {
    "Parallel",
    "Grouped",
    "Repeated",
}  # kinds that are read for one record, not inside a group


def released_by_leaf(node: Node) -> Releases:
    """Return what a loss, a mechanism or a sample of the data releases."""
    kind, fields, group = node.kind, node.fields, node.group
    size = sum(group)

    def read_part() -> Releases:
        return node.read(fields.take("part"), ALONE)

    if kind in LOSSES_OF_GROUPS:
        return Releases({LOSSES_OF_GROUPS[kind](fields, size): 1})
    if kind == "PoissonSampled":
        return poisson_sampled(fields, read_part, group)
    need(size == 1, f"a group of the kind {fields.name} has no proof here")
    if kind in LOSSES:
        return Releases({LOSSES[kind](fields): 1})
    if kind in SAMPLES:
        return SAMPLES[kind](fields, read_part)
    raise NoProof(f"the kind {fields.name} has no proof here")
