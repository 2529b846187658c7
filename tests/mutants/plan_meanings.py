"""Wrong meanings of a plan: each takes a monkeypatch."""

import itertools
from collections import Counter
from functools import reduce

from flint import arb

from accountant.amplification.single_pass import OnePass
from accountant.ledger.plan_cursor import PlanCursor
from accountant.plans import parallel
from accountant.verifier import choices, neighbours, pairs_of_sets, plan
from accountant.verifier.releases import ANY_OF, inner_releases


def expanded(releases, take, *, repeated):
    """The fixed paths through sets that are taken, as the alternatives of a plan."""
    found = [Counter()]
    for release, count in releases.items():
        some = [Counter({release: count})]
        if release[0] == ANY_OF and take(release):
            each = [Counter(dict(part)) for part in release[1]]
            picks = itertools.combinations_with_replacement(each, 1 if repeated else count)
            times = count if repeated else 1
            some = [
                sum(
                    (Counter({one: n * times for one, n in part.items()}) for part in pick),
                    Counter(),
                )
                for pick in picks
            ]
        found = [one + other for one in found for other in some]
    return found


def _with_ways(patch, take, *, repeated):
    made = choices.alternatives

    def wrong(plan, *, decimal):
        return [
            one
            for way in made(plan, decimal=decimal)
            for one in expanded(way, take, repeated=repeated)
        ]

    patch.setattr(choices, "alternatives", wrong)


def counts_multiplied(patch):
    """Of 2 * Parallel([A, B]) sees AA and BB, as the checker did."""
    _with_ways(patch, lambda _: True, repeated=True)


def fixed_paths_alone(patch):
    """Of 2 * Parallel([A, B]) sees AA, AB and BB, and no choice by earlier answers."""
    _with_ways(patch, lambda _: True, repeated=False)


def one_split_for_all(patch):
    """Takes one split of a group for all repetitions."""
    _with_ways(
        patch,
        lambda release: all(one[0] == "mixture" for one in inner_releases(release)),
        repeated=True,
    )


def any_part_is_dominated(patch):
    patch.setattr(choices, "is_dominated", lambda part, other: True)


def the_first_part_is_the_greatest(patch):
    patch.setattr(pairs_of_sets, "greatest_pair", lambda pairs, h: pairs[0])


def least_of_the_parts(patch):
    patch.setattr(pairs_of_sets, "reduce", lambda _, each: reduce(arb.min, each))


def parts_seen_forward(patch):
    """Forgets that all releases have one direction."""
    made = pairs_of_sets.sum_above
    patch.setattr(pairs_of_sets, "sum_above", lambda part, back, *given: made(part, False, *given))


def parts_are_forgotten(patch):
    """Lets a user into a second part."""
    made = PlanCursor._charge_part

    def forgets(self, node, mechanism, who):
        made(self, node, mechanism, who)
        if self._part_of_user is not None:
            self._part_of_user[:] = -1

    patch.setattr(PlanCursor, "_charge_part", forgets)


def _with_neighbours(patch, wrong):
    for module in (neighbours, plan):
        patch.setattr(module, "stated_neighbours", wrong)


def neighbours_as_written(patch):
    """Takes the neighbours that are written anywhere, as the checker did: a pass changes none."""

    def flat(value, depth):
        inner = value.values() if isinstance(value, dict) else value
        inner = inner if isinstance(value, dict | list) else ()
        found = {one for part in inner for one in flat(part, depth + 1)}
        if isinstance(value, dict):
            kind = value.get("kind")
            own = value.get("relation") or neighbours.OF_KIND.get(str(kind))
            own = own or (neighbours.ADD_REMOVE if kind in neighbours.SAMPLES else None)
            found |= {own} - {None}
        neighbours.need(len(found) < 2, "parts stated for different neighbours")
        return found

    _with_neighbours(patch, flat)


def mixed_neighbours(patch):
    """Asks for no neighbours."""
    _with_neighbours(patch, lambda value, depth: set())


def samples_of_all(patch):
    """Takes a sample for one that compares no data with and without a record."""
    patch.setattr(neighbours, "SAMPLES", ())


def passes_without_neighbours(patch):
    """Takes a pass for what its part is, so that it may be stated for a removed record."""
    patch.setattr(OnePass, "relation", property(lambda self: self.part.relation))


NEIGHBOURS = (
    neighbours_as_written, mixed_neighbours, samples_of_all, passes_without_neighbours,
)  # fmt: skip


def moves_of_any_parts(patch):
    """Asks groups by value for no neighbours of their parts."""
    patch.setattr(parallel, "common_relation", lambda parts: None)


MUTANTS = {
    "checker": (
        counts_multiplied, fixed_paths_alone, any_part_is_dominated,
        the_first_part_is_the_greatest, least_of_the_parts, parts_seen_forward,
    ),
    "groups": (counts_multiplied, one_split_for_all),
    "ledger": (parts_are_forgotten,),
}  # fmt: skip
