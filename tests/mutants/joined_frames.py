"""Wrong joins of two private tables: a person moves more joined rows than is said."""

import dataclasses

from algorithms.frames import Schema
from algorithms.frames.queries import FrameQuery
from tests.laws.test_joined_frames import declared


def forgets_the_rows_that_are_put_out(query, schema, kind):
    """A person who comes brings joined rows, and takes none of others."""
    plain = Schema(schema.columns, "id", schema.rows_per_person, schema.relation)
    return declared(query, plain, kind)


def forgets_the_second_table(query, schema, kind):
    """Rows of a person in the second table are not counted."""
    left, keep = schema.joined.schemas[0], schema.joined.rows_per_key
    rows = left.rows_per_person * keep[1]
    return declared(query, Schema(schema.columns, "id", rows, "replace-one"), kind)


def forgets_the_rows_of_a_key(query, schema, kind):
    """Each row of a person is joined with one row."""
    rows = sum(side.rows_per_person for side in schema.joined.schemas)
    return declared(query, Schema(schema.columns, "id", rows, "replace-one"), kind)


def cuts_no_key(query, frames, schema, kind):
    """All rows of a key are joined."""
    return FrameQuery.sums(query, frames, with_join(schema, rows_per_key=(99, 99)), kind)


def cuts_no_person(query, frames, schema, kind):
    """All rows of a person are joined."""
    sides = tuple(
        Schema(s.columns, s.person, 99, s.relation, "hash", formulas=s.formulas)
        for s in schema.joined.schemas
    )
    return FrameQuery.sums(query, frames, with_join(schema, schemas=sides), kind)


def with_join(schema, **facts):
    joined = dataclasses.replace(schema.joined, **facts)
    return Schema(schema.columns, *joined.person_facts, joined=joined)


WRONG = [
    ("moved", forgets_the_rows_that_are_put_out),
    ("moved", forgets_the_second_table),
    ("moved", forgets_the_rows_of_a_key),
    ("sums", cuts_no_key),
    ("sums", cuts_no_person),
]
