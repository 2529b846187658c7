"""Releases that add noise and keep a part of the value: each is found, and its honest twin is not.

The honest twin has the same form of output, with noise of epsilon 1 in every part of it.  It is
convicted at a confidence of 1 - 1e-6.
"""

import base64
import datetime
import gzip
import json
import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from audits import Outcome, audit

START = datetime.datetime(2024, 1, 1, 10, 30)
ALPHABET = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
SURE = 1 - 1e-6
FIRST = np.eye(100, dtype=np.int64)[0]


def steps(rng):
    """Symmetric geometric noise of epsilon 1 for whole numbers that differ by 1."""
    return int(rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))


def token(rng):
    return "".join(rng.choice(ALPHABET, 20))


def array_stored_as(order, rng):
    return np.asarray(rng.laplace(size=(2, 3)), order=order)


def warned(message, output):
    warnings.warn(message, stacklevel=1)
    return output


def printed(text, output):
    print(text)
    return output


def printed_itself(output):
    return printed(f"{output}", output)


def raised(text):
    raise ValueError(text)


def with_letter(letter, rng):
    text = token(rng)
    return text[:7] + letter + text[8:]


def with_bit(bit, rng):
    content = bytearray(rng.bytes(16))
    content[5] = content[5] & ~64 | 64 * bit
    return bytes(content)


def with_last_bits(bits, rng):
    pattern = np.array([rng.laplace()]).view(np.uint64)
    return float((pattern & ~np.uint64(255) | np.uint64(bits)).view(float)[0])


# Of each kind: the release of a value v, 0 or 1, with rng.  Noise of tens, minutes, days and so on.
LEAKS = {
    "last digit": lambda v, rng: 3 + v + 10 * steps(rng),
    "remainder by 16": lambda v, rng: 16 * steps(rng) + 9 * v,
    "long integer": lambda v, rng: (1 << 60) + 10 * steps(rng) + 5 * v,
    "longer integer": lambda v, rng: (1 << 80) + 60 * steps(rng) + 6 * v,
    "fraction": lambda v, rng: (1.25, 7.75)[v] + steps(rng),
    "third decimal": lambda v, rng: round(rng.laplace(), 2) + 0.001 * v,
    "last bits": lambda v, rng: with_last_bits(3 + 90 * v, rng),
    "clock of a date": lambda v, rng: (
        START + datetime.timedelta(days=10 * steps(rng), minutes=(7, 44)[v])
    ),
    "seconds of a numpy date": lambda v, rng: (
        np.datetime64(START, "s") + np.timedelta64(60 * steps(rng) + (13, 42)[v], "s")
    ),
    "nanoseconds": lambda v, rng: (
        np.datetime64(START, "ns") + np.timedelta64(1000 * steps(rng) + (13, 42)[v], "ns")
    ),
    "digit in a text": lambda v, rng: f"in all {10 * steps(rng) + (2, 7)[v]} people",
    "digit of a vector": lambda v, rng: [10 * steps(rng), 10 * steps(rng) + 4 * v, steps(rng)],
    "digit of a wide vector": lambda v, rng: 10 * rng.integers(-9, 10, 100) + 4 * v * FIRST,
    "fraction of a wide vector": lambda v, rng: rng.integers(-9, 10, 100) + 0.25 + 0.5 * v * FIRST,
    "base64": lambda v, rng: base64.b64encode(struct.pack("<2d", rng.laplace(), v)).decode(),
    "base64 of JSON": lambda v, rng: base64.b64encode(json.dumps([rng.laplace(), v]).encode()),
    "hexadecimal": lambda v, rng: struct.pack("<2d", rng.laplace(), v).hex(),
    "zlib": lambda v, rng: zlib.compress(struct.pack("<2d", rng.laplace(), v)),
    "gzip": lambda v, rng: gzip.compress(f"{rng.laplace()} {v}".encode(), mtime=0),
    "letter of a token": lambda v, rng: with_letter("qx"[v], rng),
    "last letter": lambda v, rng: token(rng)[:-1] + "ak"[v],
    "bit of bytes": with_bit,
    "little noise under a mask": lambda v, rng: np.ma.array(
        [v + rng.laplace(scale=0.05), rng.laplace()], mask=[0, 1]
    ),
    "little noise beside random bytes": lambda v, rng: (rng.bytes(64), v + rng.laplace(scale=0.05)),
    "fill value": lambda v, rng: np.ma.array([rng.laplace(), 0.0], mask=[0, 1], fill_value=v),
    "memory order": lambda v, rng: array_stored_as("CF"[v], rng),
    "warning": lambda v, rng: warned("overflow", rng.laplace()) if v else rng.laplace(),
    "printed": lambda v, rng: printed(f"scale {v}", rng.laplace()),
    "exception in every run": lambda v, rng: raised(f"no rows of {v}"),
}
HONEST = {
    "whole numbers": lambda v, rng: v + steps(rng),
    "floats": lambda v, rng: v + rng.laplace(),
    "rounded floats": lambda v, rng: round(v + rng.laplace(), 3),
    "dates": lambda v, rng: START + datetime.timedelta(days=v + steps(rng)),
    "nanoseconds": lambda v, rng: np.datetime64(START, "ns") + np.timedelta64(v + steps(rng), "ns"),
    "wide vector": lambda v, rng: rng.geometric(0.1, 100) + v * FIRST - rng.geometric(0.1, 100),
    "text": lambda v, rng: f"in all {v + steps(rng)} people",
    "base64": lambda v, rng: base64.b64encode(struct.pack("<d", v + rng.laplace())).decode(),
    "JSON": lambda v, rng: json.dumps({"count": v + steps(rng)}),
    "zlib": lambda v, rng: zlib.compress(struct.pack("<d", v + rng.laplace())),
    "token": lambda v, rng: (token(rng), v + steps(rng)),
    "bytes": lambda v, rng: rng.bytes(15) + bytes([100 + (v + steps(rng)) % 100]),
    "masked": lambda v, rng: np.ma.array([v + rng.laplace(), 0.0], mask=[0, 1], fill_value=0.0),
    "printed": lambda v, rng: printed("done", v + rng.laplace()),
    "noisy text printed": lambda v, rng: printed_itself(v + steps(rng)),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_part_that_is_kept_is_found(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        finding = audit(LEAKS[name], (0, 1), 3.0, runs=1000, rng=1)
    assert finding.outcome is Outcome.FALSIFIED


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_output_of_the_same_form_is_not_convicted(name):
    finding = audit(HONEST[name], (0, 1), 1.0, runs=1000, confidence=SURE, rng=1)
    assert finding.outcome is not Outcome.FALSIFIED


@pytest.mark.parametrize("early", [False, True])
def test_what_is_printed_is_seen_alone_where_runs_share_no_process(early):
    """What threads print cannot be told apart, so it is not looked at."""
    with ThreadPoolExecutor(2) as threads:
        shared = audit(LEAKS["printed"], (0, 1), 3.0, 1000, early=early, executor=threads, rng=1)
    alone = audit(LEAKS["printed"], (0, 1), 3.0, 1000, early=early, rng=1)
    assert (shared.outcome, alone.outcome) == (Outcome.SURVIVED, Outcome.FALSIFIED)


def test_an_exception_that_is_always_the_same_is_refused_and_a_different_one_is_noted():
    finding = audit(LEAKS["exception in every run"], (0, 1), 3.0, runs=1000, rng=1)
    assert any("raised an exception in every run" in note for note in finding.notes)


def test_what_a_release_prints_is_not_shown(capsys):
    audit(LEAKS["printed"], (0, 1), 3.0, runs=100, rng=1)
    assert capsys.readouterr() == ("", "")


def test_what_is_missing_in_few_runs_is_seen():
    def fails(v, rng, size):
        noise = rng.laplace(size=(size, 3))
        noise[rng.random(size) < 0.002 * v] = np.nan
        return noise

    assert audit(fails, (0, 1), 1.0, runs=50_000, rng=1).outcome is Outcome.FALSIFIED
