"""Wrong statistics of frames: what a person adds is not what the schema says."""

import dataclasses

import numpy as np
import pyarrow as pa

from algorithms.frames.bases import Sensitivities, sensitivities
from algorithms.frames.queries import FrameQuery
from algorithms.frames.regression.query import RegressionQuery
from algorithms.frames.schema import Schema


def forgets_rows_per_person(basis, schema, cells):
    """One row is counted for a person who has several."""
    found = sensitivities(basis, schema, cells)
    return Sensitivities(found.l1 // schema.rows_per_person, found.l2 / schema.rows_per_person)


def forgets_the_other_cell(basis, schema, cells):
    """Who is exchanged leaves a trace in one cell only."""
    return sensitivities(basis, schema, 1)


def takes_the_norm_of_one_number(basis, schema, cells):
    """The largest number of a row stands for all that the row adds."""
    found = sensitivities(basis, schema, cells)
    largest = max(abs(x) for vertex in basis.vertices for x in vertex)
    return Sensitivities(
        min(found.l1, schema.rows_per_person * largest),
        min(found.l2, float(schema.rows_per_person * largest)),
    )


def cuts_no_person(query, frame, schema, kind):
    """All rows of a person are summed."""
    everyone = Schema(dict(schema.columns), relation=schema.relation)
    return FrameQuery.sums(query, frame, everyone, kind)


def cuts_by_place_in_the_frame(query, frame, schema, kind):
    """The first rows of the frame count, so the cut of one person moves others."""
    first = frame.slice(0, 9)
    return FrameQuery.sums(query, first, schema, kind)


def clips_nothing(query, frame, schema, kind):
    """Numbers are summed as they are."""
    if query.statistic.name != "sum":
        return FrameQuery.sums(query, frame, schema, kind)
    column = query.statistic.column
    raw = np.nan_to_num(frame[column].to_numpy(zero_copy_only=False).astype(float))
    steps = raw / query.statistic.basis(schema, kind).unit
    return np.array([steps.sum()])


def fills_with_the_mean(query, frame, schema, kind):
    """A missing number counts as the mean of those that are there, which everyone moves."""
    columns = dict(schema.columns)
    for name in query.used:
        if columns[name].bounds is not None:
            found = frame[name].to_numpy(zero_copy_only=False).astype(float)
            value = np.clip(np.nanmean(found), *columns[name].bounds)
            columns[name] = dataclasses.replace(
                columns[name], missing=type(columns[name].low)(value)
            )
    filled = Schema(columns, schema.person, schema.rows_per_person, schema.relation)
    return FrameQuery.sums(query, pa.table(frame), filled, kind)


def fits_rows_for_one_row(query, schema):
    """A fit gets the noise of one row a person."""
    return RegressionQuery.mechanism(query, of_rows(schema, 1))


def fits_all_rows(query, frame, schema):
    """A fit takes all rows of a person."""
    return RegressionQuery.sums(query, frame, of_rows(schema, 1000))


def fits_who_comes_or_goes(query, frame, schema):
    """The products of who is exchanged are as large as of who comes or goes."""
    coming = Schema(schema.columns, schema.person, schema.rows_per_person)
    return RegressionQuery.sums(query, frame, coming)


def of_rows(schema, rows):
    return Schema(schema.columns, schema.person, rows, schema.relation)


WRONG = [
    ("fit", fits_rows_for_one_row),
    ("products", fits_all_rows),
    ("products", fits_who_comes_or_goes),
    ("moved", forgets_rows_per_person),
    ("moved", forgets_the_other_cell),
    ("moved", takes_the_norm_of_one_number),
    ("sums", cuts_no_person),
    ("sums", cuts_by_place_in_the_frame),
    ("sums", clips_nothing),
    ("sums", fills_with_the_mean),
]
