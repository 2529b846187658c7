"""Law: no person moves the sums of joined rows by more than the join of two tables says.

A person has rows in both tables, of keys that are full of other persons' rows: her rows put theirs
out, and meet all of the other table.  The tables are joined by that key, or by the persons.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from algorithms.frames import Category, Number, Schema, count, join_private, mean, sum_
from algorithms.frames.cells import table_shape
from algorithms.frames.queries import FrameQuery

VISITS = {"cost": Number(0, 50)}
OWNERS = {"job": Category(["cook", "nurse"]), "age": Number(-20, 100)}
ASKED = [count(epsilon=1.0), count(by="job", epsilon=1.0), sum_("cost", by="job", epsilon=1.0),
         sum_("age", epsilon=1.0), mean("age", epsilon=1.0)]  # fmt: skip
SEEDS = [*range(12), 94]  # of the last a person puts rows out in all cells


def declared(query: Any, schema: Schema, kind: str) -> Any:
    """How far a person moves the sums, as is said."""
    return query.statistic.moved(schema, kind, math.prod(table_shape(query.keys, schema)))


class Asking(NamedTuple):
    """What must fit together: what is summed, and how far it is said to move."""

    sums: Callable[..., Any] = FrameQuery.sums
    moved: Callable[..., Any] = declared


def joins(seed):
    """A join with few rows of all kinds; in every third one rows of the second put most out."""
    rng = np.random.default_rng(seed)
    rows, keep = rng.integers(1, 4, 2).tolist(), tuple(rng.integers(1, 4, 2).tolist())
    rows, keep = ([1, 3], (3, 1)) if seed % 4 == 2 else (rows, keep)
    relation = ["add-remove", "replace-one"][seed % 2]
    first = Schema(VISITS, "id", rows[0], relation, order="hash")
    second = Schema(OWNERS, "own", rows[1], relation, order="hash")
    return join_private(first, second, ["shop", {"id": "own"}][seed % 3 == 0], keep)


def tables(rng, persons, sizes, shops, nurses):
    """Rows of both tables, of some persons; so many are nurses."""
    ends, (n, m) = [-1e9, 0.0, 50.0, 1e9], sizes
    visits = {"id": rng.choice(persons, n).tolist(), "shop": np.resize(shops, n).tolist(),
              "cost": rng.choice(ends, n).tolist()}  # fmt: skip
    jobs = rng.choice(["cook", "nurse"], m, p=[1 - nurses, nurses]).tolist()
    owners = {"own": rng.choice(persons, m).tolist(), "shop": np.resize(shops, m).tolist(),
              "job": jobs, "age": rng.choice(ends, m).tolist()}  # fmt: skip
    types = {"id": pl.Int64, "own": pl.Int64, "cost": pl.Float64, "age": pl.Float64}
    return [
        pl.DataFrame(c, {name: types.get(name, pl.String) for name in c}) for c in (visits, owners)
    ]


def neighbours(relation, seed):
    """Two pairs of tables, which differ by the rows of a person in both."""
    rng = np.random.default_rng(seed)
    shops = ["a", "b", "c"][: 1 + seed % 4]
    others = tables(rng, range(10, 40), (24, 3), shops, 0.1)
    with_persons = []
    for person in (7, 8 if relation == "replace-one" else None):
        own = tables(rng, [person or 0], (6, 3) if person else (0, 0), shops, 0.9)
        frames = [pl.concat(pair) for pair in zip(others, own, strict=True)]
        with_persons.append(dict(zip(("visits", "owners"), frames, strict=True)))
    return with_persons


def moves(asking):
    """(question and join, share of the declared move) of many pairs."""
    for seed in SEEDS:
        schema = joins(seed)
        pair = neighbours(str(schema.relation), seed)
        for i, query in enumerate(ASKED):
            kind = ["laplace", "gaussian"][(seed // 2 + i) % 2]
            most = asking.moved(query, schema, kind)
            one, two = (np.array(asking.sums(query, f, schema, kind), float) for f in pair)
            move = (one - two).ravel()
            norm = np.abs(move).sum() if kind == "laplace" else np.linalg.norm(move)
            yield f"{query}, {schema.joined}", norm / (most.l1 if kind == "laplace" else most.l2)


def violation(asking):
    """Where the law fails; "" where it holds."""
    for question, share in moves(asking):
        if share > 1 + 1e-12:
            return f"{question}: a person moves {share:.6g} of the sensitivity"
    return ""


def test_no_person_moves_joined_sums_by_more_than_the_schema_says():
    shares = [share for _, share in moves(Asking())]
    assert max(shares) <= 1 + 1e-12
    assert max(shares) > 0.9
