"""The process that calls a user's function, here as a function: what it answers to each request."""

import hashlib
import sys
import warnings

import numpy as np
import pytest

from audits.runner.target_sampler import MOST_REQUEST_BYTES, _serve
from audits.runs.release_functions import CHANGED_VALUE, NO_GENERATOR

CODE = """
import sys
import numpy as np

def many(value, rng, size):
    return value + rng.normal(size=size)

def single(value, rng):
    return value + rng.normal()

def own(value):
    return value + np.random.normal()

def writes(value, rng):
    value += 1
    return value.sum() + rng.normal()

def raises(value, rng, size):
    raise KeyError("of one run")

def leaves(value, rng, size):
    sys.exit("first\\nsecond")

class Holder:
    @staticmethod
    def release(value, rng, size):
        return 2 * value + rng.normal(size=size)

number = 3
"""


class Requests:
    """A connection whose messages are given, and that keeps the answers."""

    def __init__(self, *messages):
        self.messages, self.answers = list(messages), []

    def receive(self, max_bytes):
        assert max_bytes == MOST_REQUEST_BYTES
        if not self.messages:
            raise EOFError
        return self.messages.pop(0)

    def send(self, answer):
        self.answers.append(answer)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the user's module, which no other entry of the path holds."""
    (tmp_path / "users_module.py").write_text(CODE)
    np.save(tmp_path / "three.npy", np.arange(3.0))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    monkeypatch.delitem(sys.modules, "users_module", raising=False)
    yield tmp_path
    sys.modules.pop("users_module", None)
    sys.path_importer_cache.pop(str(tmp_path), None)


def answers_of(*messages):
    """What the process answers to the messages, of which the first one names the code."""
    channel = Requests(*messages)
    with warnings.catch_warnings(), pytest.raises(EOFError):
        _serve(channel)
    assert not channel.messages
    return channel.answers


def answers(name, *requests, pair=("2", "5")):
    return answers_of([f"users_module:{name}", *pair], *requests)


@pytest.mark.parametrize(
    ("name", "factor", "takes_size"),
    [("many", 1, True), ("Holder.release", 2, True), ("single", 1, False)],
)
def test_outputs_are_those_of_the_function_on_the_value_and_seed(folder, name, factor, takes_size):
    first, second, again, facts = answers(name, [0, 8, 4], [1, 8, 4], [0, 8, 4], [])
    if takes_size:
        noise = np.random.default_rng(8).normal(size=4)
        np.testing.assert_allclose(first, factor * 2 + noise, rtol=1e-14)
        np.testing.assert_allclose(second, factor * 5 + noise, rtol=1e-14)
    assert np.array_equal(first, again)
    assert len(first) == len(second) == 4
    assert facts == {"takes_size": takes_size, "code": hashlib.sha256(CODE.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("name", "pair", "notes"),
    [
        ("many", ("2", "5"), []),
        ("own", ("2", "5"), [NO_GENERATOR]),
        ("writes", ("three.npy", "three.npy"), [CHANGED_VALUE]),
    ],
)
def test_what_calls_show_of_the_function(folder, name, pair, notes):
    assert answers(name, [20], pair=pair) == [{"notes": notes}]


@pytest.mark.parametrize(
    ("name", "pair", "error"),
    [
        (
            "raises",
            ("2", "5"),
            "a release that can be audited: release must be a function that does ",
        ),
        ("leaves", ("2", "5"), "code that runs: SystemExit: first"),
        ("missing", ("2", "5"), "code that runs: AttributeError: "),
        ("number", ("2", "5"), "a release that can be audited: users_module:number must be a"),
        ("many", ("2", "no.npy"), "a release that can be audited: --pair must be a .npy file"),
        ("many", ("2", "inf"), "a release that can be audited: --pair must be finite"),
    ],
)
def test_an_error_is_an_answer_and_the_next_request_is_served(folder, name, pair, error):
    first, second = answers(name, [0, 8, 4], [1, 8, 4], pair=pair)
    assert set(first) == set(second) == {"error"}
    assert first["error"].startswith(error)
    assert "second" not in first["error"]
    assert second == first
