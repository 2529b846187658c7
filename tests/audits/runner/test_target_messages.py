"""Outputs of a target that are sent as a message are those that are received."""

import numpy as np
import pytest

from audits.classifiers.output_features import extract_features
from audits.runner.target_messages import (
    BrokenMessage,
    decode_outputs,
    encode_outputs,
    pack_message,
    unpack_message,
)
from audits.runs.release_functions import RaisedOutcome, as_output_array
from tests.audits.classifiers.test_output_features import DIFFERENT


def received(outputs):
    return decode_outputs(unpack_message(*pack_message(encode_outputs(outputs))))


def test_different_outputs_stay_different_and_equal_ones_equal():
    outputs = as_output_array([*DIFFERENT, *DIFFERENT])
    sent, found = extract_features(outputs), extract_features(received(outputs))
    assert np.array_equal(found.category, sent.category)
    assert np.array_equal(found.structure, sent.structure)
    assert np.array_equal(found.numbers, sent.numbers, equal_nan=True)


def test_what_a_run_raised_is_received_whole():
    raised = [RaisedOutcome("KeyError", "'x'", "file.py:3"), RaisedOutcome("ValueError")]
    assert received(as_output_array([*raised, 1.0])).tolist() == [*raised, 1.0]


@pytest.mark.parametrize("outputs", [np.arange(3), np.array([[0.5, np.inf]]), np.array([True])])
def test_arrays_of_numbers_are_received_as_they_are(outputs):
    found = received(outputs)
    assert (found.dtype, found.tolist()) == (outputs.dtype, outputs.tolist())


@pytest.mark.parametrize(
    "message",
    [None, 3, [], {}, {"outputs": 3}, {"outputs": [{}]}, {"outputs": [{"raised": 3}]},
     {"outputs": [{"raised": ["a", "b", "c", "d"]}]}, {"outputs": [[1]]},
     {"outputs": [[-1, 0, []]]}, {"outputs": [[0, 0, ["x"]]]}, np.array([None])],
    ids=repr,
)  # fmt: skip
def test_a_message_without_outputs_is_broken(message):
    with pytest.raises(BrokenMessage):
        decode_outputs(message)
