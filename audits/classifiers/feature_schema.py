"""The schema by which outputs of one release are read, so that all chunks have the same columns.

It is inferred from the learning runs of an audit: how many numbers an output has, and which
structures (types, lengths, texts) are frequent.  Structures, and outputs as a whole, are known by
hash codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accountant.numerics import Array
from audits.classifiers.output_features import (
    RAW_COLUMNS,
    Codes,
    Features,
    extract_features,
    summary_columns,
)

# At most this many structures, the most frequent ones, have a column each; for others all are 0.
MAX_STRUCTURES = 16
Outputs = NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """How outputs are read.

    Their `Features` are the numbers of each output as a row, and two codes of each: of its
    structure, and of the output as a whole, its category.
    """

    width: int  # the number of numbers in an output
    structures: Codes  # the codes of frequent structures; none if all outputs have the same
    letter_width: int = 0  # the number of letters in an output

    def numbers(self, outputs: Outputs) -> Array:
        """The numbers of each output, in ``width`` columns; see `padded`."""
        return self.padded(extract_features(outputs))

    def letters(self, outputs: Outputs) -> Array:
        """The letters of each output in ``letter_width`` columns, padded with 0."""
        return self.padded_letters(extract_features(outputs))

    def padded_letters(self, features: Features) -> Array:
        """The first ``letter_width`` letters of each output, with 0 for those that it has not."""
        letters = features.letters[:, : self.letter_width].astype(float)
        missing = self.letter_width - letters.shape[1]
        return np.hstack([letters, np.zeros((len(letters), missing))])

    def categories(self, outputs: Outputs) -> Codes:
        """A code of each output as a whole."""
        return extract_features(outputs).category

    def feature_matrix(self, outputs: Outputs) -> Array:
        """Columns to learn from: numbers, their summaries, frequent structures."""
        return self.columns(extract_features(outputs))

    def columns(self, features: Features) -> Array:
        """The columns to learn from, of features that were extracted before."""
        numbers = self.padded(features)
        raw = numbers[:, :RAW_COLUMNS]
        return np.hstack([raw, summary_columns(numbers), self.shapes(features)])

    def shapes(self, features: Features) -> Array:
        """One column for each frequent structure."""
        columns: Array = (features.structure[:, None] == self.structures).astype(float)
        return columns

    def padded(self, features: Features) -> Array:
        """The first ``width`` numbers of each output, with NaN for those that it has not.

        An output with more numbers than any learning run had is read without those beyond, for
        which the learned rule has no weights.  This may cost power, and no bound its truth.
        """
        numbers = features.numbers[:, : self.width]
        short = self.width - numbers.shape[1]
        return np.hstack([numbers, np.full((len(numbers), short), np.nan)]) if short else numbers


def infer_schema(first: Features, second: Features) -> FeatureSchema:
    """The schema of the learning runs on the first and on the second value, by their features."""
    structures, counts = np.unique(
        np.concatenate([first.structure, second.structure]), return_counts=True
    )
    frequent = structures[np.argsort(-counts, kind="stable")[:MAX_STRUCTURES]]
    return FeatureSchema(
        max(first.numbers.shape[1], second.numbers.shape[1]),
        frequent if structures.size > 1 else structures[:0],
        max(first.letters.shape[1], second.letters.shape[1]),
    )
