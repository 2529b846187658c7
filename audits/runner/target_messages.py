"""Messages between the auditor and a process that runs a user's function, which is not trusted.

A message is its length in 8 bytes, its kind in one byte, and an array in numpy's format or JSON.
No pickle is read, because a pickle can run code.  What the function's process sends is read as
outputs or as an error, and as nothing else.
"""

from __future__ import annotations

import io
import json
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from audits.classifiers.output_features import (
    MAX_UNSEEN,
    OutputFeatures,
    output_features,
    read_outputs,
)
from audits.classifiers.output_walk import MAX_TEXTS, TEXT_END
from audits.runs.release_functions import RaisedOutcome

HEADER = struct.Struct(">QB")
ARRAY, WORDS = 0, 1  # kinds of a message: an array of numpy, or JSON
ARRAY_KINDS = "biufcmMUS"  # numpy's codes of numbers, times and texts, which hold no objects
SMALL = 1 << 53  # whole numbers below this are exact as floats, and sent as they are
MAX_CODE = 1 << 64  # codes of structure and category have 64 bits
MAX_LETTERS = MAX_TEXTS * 2 * TEXT_END  # bytes of the ends of texts of one output
MAX_NAME = 200  # characters of the name of a part of an output that nothing could read
# What a parser or a conversion raises on a message that is not as it must be.
MALFORMED = (ValueError, TypeError, KeyError, IndexError, EOFError, SyntaxError, OverflowError,
             MemoryError, RecursionError)  # fmt: skip


class BrokenMessage(ValueError):
    """Bytes that are no message."""


@final
@dataclass(frozen=True, slots=True)
class Channel:
    """One end of a connection; ``deadline`` is the monotonic time at which waiting ends."""

    connection: socket.socket
    deadline: float | None = None

    def send(self, message: Any) -> None:
        """Send an array, or what JSON takes; raises TimeoutError at the deadline."""
        kind, body = pack_message(message)
        self._wait_until_deadline()
        self.connection.sendall(HEADER.pack(len(body), kind))
        self._wait_until_deadline()
        self.connection.sendall(body)

    def receive(self, max_bytes: int) -> Any:
        """Receive a message of at most ``max_bytes`` bytes.

        Raises EOFError at its end, TimeoutError at the deadline, `BrokenMessage` otherwise.
        """
        size, kind = HEADER.unpack(self._read(HEADER.size))
        if size > max_bytes or kind not in {ARRAY, WORDS}:
            raise BrokenMessage
        body = self._read(size)
        return unpack_message(kind, body)

    def _read(self, size: int) -> memoryview:
        """The next ``size`` bytes, waiting until they are there."""
        # np.empty reserves addresses; physical memory is used only as bytes arrive.
        buffer = np.empty(size, np.uint8).data
        filled = 0
        while filled < size:
            self._wait_until_deadline()
            received = self.connection.recv_into(buffer[filled:])
            if received == 0:
                raise EOFError
            filled += received
        return buffer

    def _wait_until_deadline(self) -> None:
        if self.deadline is None:
            return
        remaining_seconds = self.deadline - time.monotonic()
        if remaining_seconds <= 0:
            raise TimeoutError
        self.connection.settimeout(remaining_seconds)


def pack_message(message: Any) -> tuple[int, memoryview]:
    """The kind of a message and its bytes."""
    if isinstance(message, np.ndarray):
        file = io.BytesIO()
        np.lib.format.write_array(file, message, allow_pickle=False)
        return ARRAY, file.getbuffer()
    return WORDS, memoryview(json.dumps(message).encode())


def unpack_message(kind: int, body: bytes | memoryview) -> Any:
    """The message that the bytes encode; raises `BrokenMessage` if they encode none."""
    try:
        if kind == WORDS:
            return json.loads(bytes(body))
        return np.lib.format.read_array(io.BytesIO(body), allow_pickle=False)
    except MALFORMED as error:
        raise BrokenMessage from error


def encode_outputs(outputs: NDArray[Any]) -> Any:
    """Outputs as a message: an array, or for each object the features that audits read."""
    if outputs.dtype.kind in ARRAY_KINDS:
        return outputs
    return {"outputs": [_encode_output(output) for output in read_outputs(outputs)]}


def decode_outputs(message: Any) -> NDArray[Any]:
    """The outputs in a message; raises `BrokenMessage` if it holds none."""
    if isinstance(message, np.ndarray) and message.dtype.kind in ARRAY_KINDS:
        return message
    try:
        outputs = message["outputs"]
        array = np.empty(len(outputs), dtype=object)
        for index, output in enumerate(outputs):
            array[index] = _decode_output(output)
    except MALFORMED as error:
        raise BrokenMessage from error
    return array


def _encode_output(output: Any) -> Any:
    """An output as JSON takes it: itself, the exception of its run, or the list of its features."""
    if output is None or type(output) in {bool, str, float, np.float64}:
        return output
    if type(output) is int and abs(output) < SMALL:
        return output
    if type(output) is RaisedOutcome:
        return {"raised": [output.kind, output.message, output.place]}
    features = output if isinstance(output, OutputFeatures) else output_features(output)
    numbers, letters = features.numbers.tolist(), features.letters.hex()
    return [features.structure, features.category, numbers, letters, *features.unseen]


def _decode_output(output: Any) -> Any:
    """The output that `_encode_output` made JSON of; each part is checked or converted."""
    if isinstance(output, dict):
        return RaisedOutcome(*map(str, output["raised"]))
    if isinstance(output, list):
        structure, category, numbers, letters, *unseen = output
        if not (0 <= structure < MAX_CODE and 0 <= category < MAX_CODE):
            raise BrokenMessage
        row = np.array([float(number) for number in numbers])
        names = tuple(str(name)[:MAX_NAME] for name in unseen[:MAX_UNSEEN])
        ends = bytes.fromhex(letters)[:MAX_LETTERS]
        return OutputFeatures(int(structure), int(category), row, names, ends)
    return output
