"""The process that calls a user's function or program, and sends the auditor its outputs.

The auditor never imports the function, and computes the verdict from what is sent: outputs, times,
what a few calls show of the function, a digest of its file, and texts of errors.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import socket
import sys
import warnings
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from audits.runner.target_messages import Channel, encode_outputs
from audits.runner.target_values import load_value
from audits.runs.command import Command
from audits.runs.release_functions import calls_once_a_run, observations, vectorised

MOST_REQUEST_BYTES = 1 << 62  # no limit in effect, as the auditor is trusted


def _serve(channel: Channel) -> None:
    """Answer requests until the connection is closed.

    The first message names both values, and the function or the arguments of a `Command`.  Each
    later one is a request:

    - ``[value_index, seed, runs]`` asks for the outputs of so many runs on the first value (index
      0) or the second (index 1);
    - ``[runs]`` asks what so many more runs show of the function (`observations`);
    - ``[]`` asks whether the function takes a number of runs, and for a digest of its file;
    - ``[seed, pairs, batch, 0]`` asks for the times and the noise of batches, as
      `BatchTimer` measures them.
    """
    sys.path.insert(0, "")  # the function's module may be in the current folder
    warnings.simplefilter("ignore")
    code, *value_words = channel.receive(MOST_REQUEST_BYTES)
    values: list[Any] = []
    release: Any = None
    while True:
        request = channel.receive(MOST_REQUEST_BYTES)
        try:
            values = values or [load_value(word) for word in value_words]
            if release is None:
                release = _import_function(code) if isinstance(code, str) else Command(**code)
            draw = vectorised(release)
            if not request:
                answer: Any = {"takes_size": not calls_once_a_run(draw), "code": _digest(code)}
            elif len(request) == 1:
                answer = {"notes": observations(draw, values, request[0])}
            elif len(request) == 4:
                from audits.attacks.timing import BatchTimer  # not needed by most processes

                seed, pairs, batch, _ = request
                timer = BatchTimer(release, values, batch, np.random.default_rng(seed))
                answer = np.stack(timer.measure(pairs))
            else:
                value_index, seed, runs = request
                # The outputs get no name, so that they do not stay in memory with the next ones.
                answer = encode_outputs(
                    draw(values[value_index], np.random.default_rng(seed), runs)
                )
        except ParameterError as error:
            is_program = error.argument == "command"
            answer = {
                "error": error.allowed if is_program else f"a release that can be audited: {error}"
            }
        except BaseException as error:  # any error of the code, sys.exit too
            answer = {"error": f"code that runs: {_error_text(error)}"}
        channel.send(answer)
        del answer  # outputs may be large


def _import_function(name: str) -> Any:
    """Return what ``package.module:function`` or ``package.module:Class.method`` names."""
    module, _, function = name.partition(":")
    member: Any = importlib.import_module(module)
    for word in function.split("."):
        member = getattr(member, word)
    if not callable(member):
        raise ParameterError(name, type(member).__name__, "a function")
    return member


def _digest(code: str | dict[str, Any]) -> str:
    """Return a digest of a function's module file, "" if it has none, or of a program's files."""
    if not isinstance(code, str):
        from audits.results.result_file import code_digest

        return code_digest(program=code["command"])
    path = getattr(sys.modules.get(code.partition(":")[0]), "__file__", None)
    if not isinstance(path, str) or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _error_text(error: BaseException) -> str:
    """Return the class of an exception and the first line of its message."""
    try:
        message = (str(error).splitlines() or [""])[0][:200]
    except Exception:  # its own __str__ may raise
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


if __name__ == "__main__":
    with contextlib.suppress(EOFError, OSError):  # the auditor has closed the connection
        _serve(Channel(socket.socket(fileno=int(sys.argv[1]))))
    os._exit(0)
