"""Wrong ranks, labels and keys of frames: a person moves more than the plan says."""

import dataclasses

import numpy as np

from algorithms.frames import Key, Schema
from algorithms.frames.private_keys import key_counts, steps_by_keys
from algorithms.frames.quantile_query import QuantileQuery
from algorithms.frames.rows import Reading
from algorithms.frames.sources import source_of
from algorithms.frames.top_query import TopQuery
from mechanisms import GaussianPartitionSelection
from mechanisms.families.key_counts import STEPS, KeyCounts


def plans_for_one_row(query, schema):
    """A person with several rows is taken for one with a single row."""
    return QuantileQuery.plan(query, of_rows(schema, 1))


def plans_for_who_comes_or_goes(query, schema):
    """An exchange of persons is taken for a person more or less."""
    return QuantileQuery.plan(query, Schema(schema.columns, "id", schema.rows_per_person))


def weighs_ranks_twice(query, frame, schema, parts, scale):
    """The score is the distance of ranks: twice what moves by one half."""
    found = query.read_by(schema).scores(frame, parts, scale)
    return found * np.array([2.0, 1.0])[:, None]


def scores_all_rows(query, frame, schema, parts, scale):
    """Quantiles of all rows of a person."""
    return query.read_by(of_rows(schema, 1000)).scores(frame, parts, scale)


def counts_records_whole(query, frame, schema, parts, scale):
    """An end's score is the number of records between: without half of those of its part."""
    found = query.read_by(schema).end_scores(frame, parts, scale)
    return found - np.array([1.0, 0.0])[:, None] * found[:, :1, :1]


def counts_all_rows(query, frame, schema):
    """All rows of a person are counted."""
    return query.read_by(of_rows(schema, 1000)).counted(frame)


def counts_a_person_for_each_row(query, frame, schema):
    """A label counts as often as a person has it."""
    labels = column_of_rows(query, frame, schema, query.column)
    names = schema.kind(query.column).labels
    return np.array([(labels == name).sum() for name in names])


def labels_of_all_rows(query, frame, schema):
    """All labels of a person count."""
    return TopQuery.persons_of_labels(query, frame, of_rows(schema, 1000))


def takes_groups_for_disjoint_persons(query, schema):
    """A person is taken for one of a single group, as a row is in one."""
    return TopQuery.plan(query, of_rows(schema, 1))


def takes_all_keys(query, frame, key, schema, *how):
    """All keys of a person count."""
    columns = {**schema.columns, key: Key(512)}
    every = Schema(columns, schema.person, schema.rows_per_person, schema.relation)
    return key_counts(query, frame, key, every, *how)


def weighs_each_key_whole(query, frame, key, schema, selection, earlier):
    """Each key of a person weighs as much as an only one would."""
    once = key_counts(query, frame, key, schema, earlier=earlier)
    whole = STEPS if isinstance(selection, GaussianPartitionSelection) else 1
    return KeyCounts(once.keys, once.counts * whole)


def counts_keys_of_rows(query, frame, key, schema, *how):
    """A key counts as often as a person has it."""
    del how
    keys = column_of_rows(query, frame, schema, key)
    names, counts = np.unique(keys.astype(str), return_counts=True)
    return KeyCounts(names, counts)


def forgets_the_other_key(query, key, schema):
    """Who is exchanged leaves a trace at one key only."""
    selections, noise = steps_by_keys(query, key, schema)
    once, _ = steps_by_keys(query, key, Schema(schema.columns, "id", schema.rows_per_person))
    return [dataclasses.replace(one, keys=once[0].keys) for one in selections], noise


def forgets_who_comes(query, key, schema):
    """Rounds take an exchange of persons for one who goes."""
    selections, noise = steps_by_keys(query, key, schema)
    in_rounds = len(selections) > 1
    changes = {"persons": 1} if in_rounds else {}
    return [dataclasses.replace(one, **changes) for one in selections], noise


def noise_for_one_row(query, key, schema):
    """The statistic of a key gets the noise of one row a person."""
    _, noise = steps_by_keys(query, key, of_rows(schema, 1))
    return steps_by_keys(query, key, schema)[0], noise


def column_of_rows(query, frame, schema, column):
    """A column of the rows that count."""
    rows = source_of(frame, Reading(query.used, query.where, schema)).columns()
    return rows[f"c{query.used.index(column)}"]


def of_rows(schema, rows):
    return Schema(schema.columns, schema.person, rows, schema.relation)


WRONG = [
    ("plan", plans_for_one_row),
    ("plan", plans_for_who_comes_or_goes),
    ("scores", weighs_ranks_twice),
    ("scores", scores_all_rows),
    ("end_scores", counts_records_whole),
    ("counted", counts_all_rows),
    ("labels", counts_a_person_for_each_row),
    ("labels", labels_of_all_rows),
    ("top", takes_groups_for_disjoint_persons),
    ("keys", takes_all_keys),
    ("keys", counts_keys_of_rows),
    ("keys", weighs_each_key_whole),
    ("steps", forgets_the_other_key),
    ("steps", forgets_who_comes),
    ("steps", noise_for_one_row),
]
