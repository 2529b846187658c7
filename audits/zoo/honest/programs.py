"""Honest programs of the kinds that the broken ones have: dates, texts, codes, containers, errors.

Each function adds noise of its claim to a value and then releases what it makes of it, so that its
privacy is that of the noise.  Its docstring says what it releases.  `specimens` states of each the
two values that an audit is to tell apart, and their true epsilon.  The claim is 1-DP where no other
is stated.
"""

from __future__ import annotations

import base64
import bz2
import collections
import dataclasses
import datetime
import json
import math
import pickle
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.claims.findings import Outcome
from audits.zoo.specimen import Specimen, program, specimen, whole_noise

Generator = np.random.Generator
Output = NDArray[Any]
MIDNIGHT = datetime.datetime(2024, 3, 4, tzinfo=datetime.UTC)
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
HALF = math.log1p(math.expm1(1.0) / 2)  # epsilon of 1-DP on a secret half of the records
SIGMA = 3.7306317  # Gaussian noise of (1, 1e-5)-DP at sensitivity 1, by Balle & Wang (2018)
DELTA = 0.01


class Answer(NamedTuple):
    """A noisy count with a public name."""

    people: int
    name: str


@dataclasses.dataclass
class Report:
    """A noisy count, and noise."""

    count: int
    noise: float


def random_token(rng: Generator, length: int = 12) -> str:
    """Random letters."""
    return "".join(rng.choice(LETTERS, length))


def dump(count: int, rng: Generator) -> bytes:
    """JSON of a noisy count and of a random number."""
    return json.dumps({"noise": rng.random(), "count": count + whole_noise(rng)}).encode()


def number_of_a_day(day: int, rng: Generator) -> int:
    """A day number under noise of days."""
    return day + whole_noise(rng)


def date_under_days(day: int, rng: Generator) -> datetime.date:
    """A date under noise of days."""
    return MIDNIGHT.date() + datetime.timedelta(days=day + whole_noise(rng))


def time_under_seconds(second: int, rng: Generator) -> datetime.datetime:
    """A time under noise of seconds."""
    return MIDNIGHT + datetime.timedelta(seconds=second + whole_noise(rng))


def date_of_numpy(day: int, rng: Generator) -> np.datetime64:
    """A date of numpy under noise of days."""
    return np.datetime64("2024-03-04") + np.timedelta64(day + whole_noise(rng), "D")


def text_of_eight_digits(count: int, rng: Generator) -> str:
    """A noisy count, filled up with zeros to eight digits."""
    return f"{count + whole_noise(rng):08d}"


def hexadecimal_count(count: int, rng: Generator) -> str:
    """A noisy count in hexadecimal digits."""
    return hex(count + whole_noise(rng))


def count_with_commas(count: int, rng: Generator) -> str:
    """A noisy count with commas between thousands."""
    return f"{count + whole_noise(rng):,} people"


def count_and_token(count: int, rng: Generator) -> tuple[int, str]:
    """A noisy count beside random letters."""
    return count + whole_noise(rng), random_token(rng)


def coded_in_base_64(count: int, rng: Generator) -> str:
    """JSON with a noisy count, in base 64."""
    return base64.b64encode(dump(count, rng)).decode()


def coded_in_base_32(count: int, rng: Generator) -> str:
    """JSON with a noisy count, in base 32."""
    return base64.b32encode(dump(count, rng)).decode()


def compressed(count: int, rng: Generator) -> bytes:
    """JSON with a noisy count, compressed."""
    return bz2.compress(dump(count, rng))


def pickled_count(count: int, rng: Generator) -> bytes:
    """A pickle of a noisy count between random numbers."""
    return pickle.dumps((rng.random(), count + whole_noise(rng), rng.random()))


def identifier_and_count(count: int, rng: Generator) -> tuple[uuid.UUID, int]:
    """A random identifier beside a noisy count."""
    return uuid.UUID(bytes=rng.bytes(16)), count + whole_noise(rng)


def packed_identifier(count: int, rng: Generator) -> int:
    """A noisy count between random bits."""
    noisy = (count + whole_noise(rng)) % 1024
    return int(rng.integers(1 << 20)) << 30 | noisy << 20 | int(rng.integers(1 << 20))


def address_of_a_noisy_host(host: int, rng: Generator) -> IPv4Address:
    """An internet address with a random network and a noisy host."""
    return IPv4Address(int(rng.integers(1 << 24)) << 8 | (host + whole_noise(rng)) % 256)


def counts_of_public_keys(count: int, rng: Generator) -> collections.Counter[str]:
    """Noisy counts of keys that are public, of which one moves."""
    return collections.Counter({"a": count + whole_noise(rng), "b": whole_noise(rng)})


def named_answer(count: int, rng: Generator) -> Answer:
    """A noisy count in a named tuple."""
    return Answer(count + whole_noise(rng), "count")


def report_with_noise(count: int, rng: Generator) -> Report:
    """A noisy count and noise in a data class."""
    return Report(count + whole_noise(rng), rng.laplace())


def mask_of_coins(count: int, rng: Generator) -> Any:
    """A noisy count in an array whose mask is random."""
    noisy = [float(count + whole_noise(rng)), rng.laplace()]
    return np.ma.array(noisy, mask=rng.random(2) < 0.5)


def sparse_answer(count: int, rng: Generator) -> Any:
    """A noisy count in a sparse matrix whose places are public."""
    from scipy.sparse import csr_array

    return csr_array(([count + whole_noise(rng) + 0.5, 1.0], [0, 2], [0, 2]), shape=(1, 3))


def record_of_numpy(count: int, rng: Generator) -> Any:
    """A noisy count and a random word in a record array."""
    row = (count + whole_noise(rng), random_token(rng, 3))
    return np.array([row], dtype=[("count", int), ("word", "U3")])


def columns_first(count: int, rng: Generator) -> Any:
    """A noisy matrix that is always stored column by column."""
    matrix = rng.laplace(size=(2, 3))
    matrix[0, 0] = count + whole_noise(rng)
    return np.asfortranarray(matrix)


def error_of_a_noisy_count(count: int, rng: Generator) -> float:
    """Raises an error with a noisy count in every run."""
    raise ValueError(f"{count + whole_noise(rng)} rows")


def status_of_a_noisy_exit(count: int, rng: Generator) -> int:
    """Leaves the program with a noisy status, half of the time."""
    noisy = (count + whole_noise(rng)) % 100
    if rng.random() < 0.5:
        sys.exit(noisy)
    return noisy


def warning_by_a_coin(count: int, rng: Generator) -> int:
    """Warns of one of two kinds, whatever the value, and releases a noisy count."""
    kind = RuntimeWarning if rng.random() < 0.5 else UserWarning
    warnings.warn("few rows", kind, stacklevel=1)
    return count + whole_noise(rng)


def printed_count(count: int, rng: Generator) -> float:
    """Prints a noisy count and returns noise."""
    print(f"{count + whole_noise(rng)} rows")
    return rng.laplace()


def retries_by_a_coin(count: int, rng: Generator) -> tuple[int, int]:
    """Draws again while a coin says so, and reports how often."""
    tries = int(rng.geometric(0.5))
    return count + whole_noise(rng), tries


def capitals_by_response(answer: int, rng: Generator) -> str:
    """A random token in small or in capital letters, by a randomised response."""
    said = answer ^ int(rng.random() < 1 / (1 + math.e))
    return random_token(rng).upper() if said else random_token(rng)


def keys_by_response(answer: int, rng: Generator) -> dict[str, float]:
    """Two keys whose order is a randomised response."""
    said = answer ^ int(rng.random() < 1 / (1 + math.e))
    return {key: rng.laplace() for key in ("no", "yes")[:: 1 - 2 * said]}


def list_of_noisy_length(count: int, rng: Generator) -> list[float]:
    """A list of random numbers whose length is a noisy count."""
    return rng.random(max(count + whole_noise(rng), 0)).tolist()  # type: ignore[no-any-return]


def shares_of_a_noisy_count(count: int, rng: Generator) -> tuple[int, int]:
    """A noisy count as the sum of two random numbers."""
    share = int(rng.integers(-1000, 1000))
    return share, count + whole_noise(rng) - share


def fraction_of_a_noisy_count(count: int, rng: Generator) -> Fraction:
    """A noisy count in sevenths."""
    return Fraction(count + whole_noise(rng), 7)


def decimal_of_a_noisy_count(count: int, rng: Generator) -> Decimal:
    """A noisy count in cents."""
    return Decimal(count + whole_noise(rng)).scaleb(-2)


def pattern_of_a_noisy_count(count: int, rng: Generator) -> re.Pattern[str]:
    """A pattern of as many letters as a noisy count."""
    return re.compile(f"[a-z]{{{max(count + whole_noise(rng), 0)}}}")


def generator_of_answers(count: int, rng: Generator) -> Iterator[float]:
    """Yields a noisy count, and then noise."""
    yield float(count + whole_noise(rng))
    yield rng.laplace()


# --- many runs a call ---


def logistic_noise(value: float, rng: Generator, size: int) -> Output:
    """Logistic noise of scale 1."""
    # Of its density f, |(ln f)'| is below 1 everywhere, and 1 in the limit.
    return value + rng.logistic(size=size)


def rounded_release(value: float, rng: Generator, size: int) -> Output:
    """A Laplace release, rounded to cents."""
    return np.round(value + rng.laplace(size=size), 2)


def complex_noise(value: float, rng: Generator, size: int) -> Output:
    """A Laplace release as the real part, noise as the imaginary one."""
    return value + rng.laplace(size=size) + 1j * rng.laplace(size=size)


def clips_both_ends(record: float, rng: Generator, size: int) -> Output:
    """A record that is clipped to [0, 1] before the noise."""
    return min(max(record, 0.0), 1.0) + rng.laplace(size=size)


def three_levels_of_a_tree(count: int, rng: Generator, size: int) -> Output:
    """Three counts that all move, under a third of the budget each."""
    return np.array([0, 10, 100]) + count + rng.laplace(scale=3.0, size=(size, 3))


def secret_half(value: float, rng: Generator, size: int) -> Output:
    """A Laplace release of a record that is in a secret sample by a coin."""
    return value * rng.integers(2, size=size) + rng.laplace(size=size)


def clipped_gradient(gradient: Output, rng: Generator, size: int) -> Output:
    """A gradient that is clipped to norm 1, under Gaussian noise for it."""
    clipped = gradient * min(1.0, 1 / max(float(np.linalg.norm(gradient)), 1e-12))
    return clipped + rng.normal(scale=SIGMA, size=(size, len(gradient)))


def key_above_a_threshold(count: int, rng: Generator, size: int) -> Output:
    """A key that one person holds, above the threshold for its delta."""
    # P(1 + Laplace > 1 + t) is e^-t / 2, which is delta.
    noisy = count + rng.laplace(size=size)
    return np.where((noisy > 1 + math.log(0.5 / DELTA)) & (count > 0), noisy, 0.0)


def specimens_by_kind() -> dict[str, list[Specimen]]:
    """Honest programs with their true epsilons, by what their outputs are."""
    numbers, counts = (0.0, 1.0), (204, 205)
    approximate = ApproxLoss(1.0, 1e-5)
    of_counts: dict[str, list[Callable[..., Any]]] = {
        "numbers and dates": [
            number_of_a_day, date_under_days, time_under_seconds, date_of_numpy,
            packed_identifier, address_of_a_noisy_host, fraction_of_a_noisy_count,
            decimal_of_a_noisy_count, shares_of_a_noisy_count,
        ],
        "texts": [
            text_of_eight_digits, hexadecimal_count, count_with_commas, count_and_token,
            pattern_of_a_noisy_count,
        ],
        "codes": [
            coded_in_base_64, coded_in_base_32, compressed, pickled_count, identifier_and_count,
        ],
        "containers": [
            counts_of_public_keys, named_answer, report_with_noise, mask_of_coins, sparse_answer,
            record_of_numpy, columns_first, generator_of_answers, retries_by_a_coin,
        ],
        "errors, warnings, printed texts": [
            error_of_a_noisy_count, status_of_a_noisy_exit, warning_by_a_coin, printed_count,
        ],
    }  # fmt: skip
    kinds = {
        kind: [program(release, counts, 1.0) for release in releases]
        for kind, releases in of_counts.items()
    }
    kinds["texts"].append(program(capitals_by_response, (0, 1), 1.0))
    kinds["containers"] += [
        program(keys_by_response, (0, 1), 1.0),
        program(list_of_noisy_length, (20, 21), 1.0),
    ]
    kinds["statistics and gradients"] = [
        specimen(logistic_noise, numbers, 1.0),
        specimen(rounded_release, numbers, 1.0),
        specimen(complex_noise, numbers, 1.0),
        specimen(clips_both_ends, (0.0, 5.0), 1.0),
        specimen(three_levels_of_a_tree, (0, 1), 1.0),
        specimen(secret_half, numbers, HALF, claim=PureLoss(HALF)),
        specimen(clipped_gradient, (np.zeros(3), np.full(3, 5.0)), 1.0, claim=approximate),
        specimen(key_above_a_threshold, (0, 1), 0.0, claim=ApproxLoss(0.0, DELTA)),
    ]
    return {
        kind: [dataclasses.replace(row, expected=Outcome.SURVIVED) for row in rows]
        for kind, rows in kinds.items()
    }


def specimens() -> list[Specimen]:
    """All honest programs."""
    return [row for rows in specimens_by_kind().values() for row in rows]
