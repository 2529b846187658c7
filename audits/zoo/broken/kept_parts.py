"""Programs that keep a part of the exact value: a digit, a weekday, a letter, a share, a code.

Each function is one run of a program.  Its docstring says what is kept.  `specimens` states of each
the two values that an audit is to tell apart.  Their true epsilon is infinite, for the part that is
kept tells them apart; the claim is 1-DP.
"""

from __future__ import annotations

import base64
import bz2
import datetime
import json
import lzma
import math
import pickle
import struct
import unicodedata
import urllib.parse
import uuid
import zlib
from ipaddress import IPv4Address
from typing import Any

import numpy as np

from audits.zoo.specimen import Specimen, program, whole_noise

Generator = np.random.Generator
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIDNIGHT = datetime.datetime(2024, 3, 4, tzinfo=datetime.UTC)


def token(rng: Generator, length: int, alphabet: int = len(LETTERS)) -> str:
    """Random letters of an alphabet of so many."""
    return "".join(LETTERS[index] for index in rng.integers(alphabet, size=length))


# --- numbers ---


def weekday_of_a_day_number(day: int, rng: Generator) -> int:
    """Moves the number of a day by whole weeks: the weekday stays."""
    return day + 7 * whole_noise(rng, 0.1)


def month_of_a_month_number(month: int, rng: Generator) -> int:
    """Moves a number of months by whole years: the month stays."""
    return month + 12 * whole_noise(rng, 0.1)


def hour_of_an_hour_number(hour: int, rng: Generator) -> int:
    """Moves a number of hours by whole days: the hour of the day stays."""
    return hour + 24 * whole_noise(rng, 0.1)


def price_with_its_ending(price: float, rng: Generator) -> float:
    """Moves a price by whole units: its cents stay."""
    return price + whole_noise(rng, 0.01)


def thirds(number: float, rng: Generator) -> float:
    """Adds whole thirds to a number: what is beyond a third stays."""
    return number + whole_noise(rng, 0.01) / 3


def mantissa_under_powers_of_two(number: float, rng: Generator) -> float:
    """Multiplies by a power of two: the mantissa stays."""
    return math.ldexp(number, whole_noise(rng, 0.02))


def negative_zero(sign: int, rng: Generator) -> float:
    """Releases zero with the sign of the value."""
    return math.copysign(0.0 if rng.random() < 0.5 else math.nan, sign)


def field_of_an_identifier(machine: int, rng: Generator) -> int:
    """Packs noise, the exact value and noise into one whole number."""
    return int(rng.integers(1 << 20)) << 30 | machine << 20 | int(rng.integers(1 << 20))


def low_word_of_a_long_number(word: int, rng: Generator) -> int:
    """Puts random high words before the exact low one."""
    return int(rng.integers(1 << 62)) << 64 | word


def shares_that_add_up(number: float, rng: Generator) -> tuple[float, float]:
    """Splits a number into two random shares, and releases both."""
    share = float(rng.uniform(-1e6, 1e6))
    return share, number - share


def one_time_pad_beside_its_key(byte: int, rng: Generator) -> tuple[int, int]:
    """Encrypts with a random key, and releases the key too."""
    key = int(rng.integers(256))
    return byte ^ key, key


def numerator_and_denominator(ratio: float, rng: Generator) -> tuple[float, float]:
    """Releases a ratio as two random numbers whose quotient is exact."""
    denominator = math.exp(rng.normal(scale=3.0))
    return ratio * denominator, denominator


def imaginary_part(number: float, rng: Generator) -> complex:
    """Hides a trace of the exact number in the imaginary part."""
    return complex(number + rng.laplace(), number * 1e-30)


# --- dates and times ---


def weekday_of_a_date(day: int, rng: Generator) -> datetime.date:
    """Moves a date by whole weeks: the weekday stays."""
    return MIDNIGHT.date() + datetime.timedelta(days=day + 7 * whole_noise(rng, 0.1))


def birthday_without_its_year(day: int, rng: Generator) -> datetime.date:
    """Draws the year at random: day and month stay."""
    return datetime.date(int(rng.integers(1900, 2000)), 5, day)


def second_under_minutes(second: int, rng: Generator) -> datetime.datetime:
    """Moves a time by whole minutes: the second stays."""
    return MIDNIGHT + datetime.timedelta(minutes=whole_noise(rng, 0.01), seconds=second)


def zone_of_a_time(offset: int, rng: Generator) -> datetime.datetime:
    """Draws the time at random and states it in the zone of the user."""
    zone = datetime.timezone(datetime.timedelta(hours=offset))
    return (MIDNIGHT + datetime.timedelta(seconds=int(rng.integers(10**6)))).astimezone(zone)


def microseconds_of_a_duration(micro: int, rng: Generator) -> datetime.timedelta:
    """Adds whole milliseconds to a duration: the microseconds stay."""
    return datetime.timedelta(milliseconds=int(rng.integers(10**6)), microseconds=micro)


def weeks_of_numpy(day: int, rng: Generator) -> np.datetime64:
    """Moves a date of numpy by whole weeks: the weekday stays."""
    return np.datetime64("2024-03-04") + np.timedelta64(day + 7 * whole_noise(rng, 0.1), "D")


def clock_in_a_text(minute: int, rng: Generator) -> str:
    """Moves a time by whole days and writes it as a text."""
    moved = MIDNIGHT + datetime.timedelta(days=whole_noise(rng, 0.01), minutes=minute)
    return moved.isoformat()


def name_of_the_weekday(day: int, rng: Generator) -> str:
    """Moves a time by whole weeks and writes it as mail does, with the weekday."""
    moved = MIDNIGHT + datetime.timedelta(days=day + 7 * whole_noise(rng, 0.1))
    return moved.strftime("%a, %d %b %Y")


# --- texts ---


def letter_in_the_middle(letter: int, rng: Generator) -> str:
    """A token of 101 random letters, the middle one of which is the value."""
    return token(rng, 50) + LETTERS[letter] + token(rng, 50)


def capitals(side: int, rng: Generator) -> str:
    """A random token in small or in capital letters."""
    return token(rng, 12).upper() if side else token(rng, 12)


def space_at_the_end(side: int, rng: Generator) -> str:
    """A random token, with a space behind it for one value."""
    return token(rng, 12) + " " * side


def accents(side: int, rng: Generator) -> str:
    """A name with accents, as one code or as two, between random letters."""
    return unicodedata.normalize("NFD" if side else "NFC", f"{token(rng, 4)}é{token(rng, 4)}")


def leading_zeros(digits: int, rng: Generator) -> str:
    """A noisy count, filled up with zeros to as many digits as the exact one has."""
    return str(500 + whole_noise(rng)).zfill(digits)


def exponent_or_not(side: int, rng: Generator) -> str:
    """A random number, written with an exponent for one value."""
    return f"{rng.random():e}" if side else f"{rng.random():f}"


def last_digit_in_hexadecimal(count: int, rng: Generator) -> str:
    """Noise of sixteens on a count that is written in hexadecimal."""
    return hex(count + 16 * whole_noise(rng, 0.01))


def digits_behind_the_comma(count: int, rng: Generator) -> str:
    """Noise of whole thousands on a count that is written with commas."""
    return f"{count + 1000 * whole_noise(rng, 0.01):,}"


def order_of_words(side: int, rng: Generator) -> str:
    """Two words in the order of the value, with a random number between them."""
    first, second = ("no", "yes")[:: 1 - 2 * side]
    return f"{first} {rng.random()} {second}"


def length_of_a_token(length: int, rng: Generator) -> str:
    """A random token that is as long as the exact text."""
    return token(rng, length)


def letter_that_never_comes(letters: int, rng: Generator) -> str:
    """A random token of an alphabet that lacks a letter for one value."""
    return token(rng, 60, letters)


def domain_of_an_address(side: int, rng: Generator) -> str:
    """A random name at the exact domain."""
    return f"{token(rng, int(rng.integers(3, 12)))}@{('left', 'right')[side]}.example"


# --- codes ---


def dump(value: Any, rng: Generator) -> bytes:
    """JSON of noise and of the exact value."""
    return json.dumps({"noise": rng.random(), "exact": value, "more": rng.random()}).encode()


def base_32(value: int, rng: Generator) -> str:
    """JSON with the exact value, in base 32."""
    return base64.b32encode(dump(value, rng)).decode()


def base_85(value: int, rng: Generator) -> bytes:
    """JSON with the exact value, in base 85."""
    return base64.b85encode(dump(value, rng))


def compressed_by_bz2(value: int, rng: Generator) -> bytes:
    """JSON with the exact value, compressed by bz2."""
    return bz2.compress(dump(value, rng))


def compressed_by_lzma(value: int, rng: Generator) -> bytes:
    """JSON with the exact value, compressed by lzma."""
    return lzma.compress(dump(value, rng))


def three_codes_deep(value: int, rng: Generator) -> str:
    """JSON with the exact value, in base 64, compressed, in hexadecimal."""
    return zlib.compress(base64.b64encode(dump(value, rng))).hex()


def pickled(value: int, rng: Generator) -> bytes:
    """A pickle of noise, the exact value, and noise."""
    return pickle.dumps((rng.random(), value, rng.random()))


def big_endian(value: float, rng: Generator) -> bytes:
    """Two floats with the high byte first, the first of them exact up to a millionth."""
    return struct.pack(">dd", value + 1e-6 * rng.random(), rng.random())


def quoted_for_a_link(value: int, rng: Generator) -> str:
    """A link whose query has the exact value, quoted."""
    return "https://example.org/?q=" + urllib.parse.quote(dump(value, rng))


def signed_token(value: int, rng: Generator) -> str:
    """Three parts in base 64 with dots between them, of which one has the exact value."""
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    body = base64.urlsafe_b64encode(dump(value, rng)).rstrip(b"=").decode()
    return f"{head}.{body}.{token(rng, 20)}"


def data_in_a_link(value: int, rng: Generator) -> str:
    """A link that holds JSON with the exact value in base 64."""
    return "data:application/json;base64," + base64.b64encode(dump(value, rng)).decode()


def node_of_an_identifier(node: int, rng: Generator) -> uuid.UUID:
    """A universal identifier whose last bits are the value."""
    return uuid.UUID(int=int.from_bytes(rng.bytes(10), "big") << 48 | node)


def host_of_an_address(host: int, rng: Generator) -> IPv4Address:
    """An internet address with a random network and the exact host."""
    return IPv4Address(int(rng.integers(1 << 24)) << 8 | host)


def fingerprint(value: int, rng: Generator) -> str:
    """A checksum of the exact value beside noise."""
    return f"{rng.random():.3f}/{zlib.crc32(str(value).encode()):08x}"


def parity_byte(value: int, rng: Generator) -> bytes:
    """Random bytes whose sum, modulo 256, is the value."""
    content = rng.bytes(7)
    return content + bytes([(value - sum(content)) % 256])


def specimens() -> list[Specimen]:
    """Programs that keep a part of the value, with the two values that it tells apart."""
    counts, sides = (7204, 7205), (0, 1)
    return [
        program(weekday_of_a_day_number, (738_000, 738_001)),
        program(month_of_a_month_number, (24_000, 24_001)),
        program(hour_of_an_hour_number, (400_000, 400_001)),
        program(price_with_its_ending, (19.99, 19.49)),
        program(thirds, (1.0, 1.1)),
        program(mantissa_under_powers_of_two, (1.25, 1.5)),
        program(negative_zero, (1, -1)),
        program(field_of_an_identifier, (3, 4)),
        program(low_word_of_a_long_number, counts),
        program(shares_that_add_up, (0.0, 1.0)),
        program(one_time_pad_beside_its_key, (5, 6)),
        program(numerator_and_denominator, (1.0, 1.1)),
        program(imaginary_part, (0.0, 1.0)),
        program(weekday_of_a_date, sides),
        program(birthday_without_its_year, (3, 4)),
        program(second_under_minutes, (17, 18)),
        program(zone_of_a_time, (1, 2)),
        program(microseconds_of_a_duration, (204, 205)),
        program(weeks_of_numpy, sides),
        program(clock_in_a_text, (61, 62)),
        program(name_of_the_weekday, sides),
        program(letter_in_the_middle, sides),
        program(capitals, sides),
        program(space_at_the_end, sides),
        program(accents, sides),
        program(leading_zeros, (5, 6)),
        program(exponent_or_not, sides),
        program(last_digit_in_hexadecimal, counts),
        program(digits_behind_the_comma, counts),
        program(order_of_words, sides),
        program(length_of_a_token, (40, 41)),
        program(letter_that_never_comes, (26, 25)),
        program(domain_of_an_address, sides),
        program(base_32, counts),
        program(base_85, counts),
        program(compressed_by_bz2, counts),
        program(compressed_by_lzma, counts),
        program(three_codes_deep, counts),
        program(pickled, counts),
        program(big_endian, (0.0, 1.0)),
        program(quoted_for_a_link, counts),
        program(signed_token, counts),
        program(data_in_a_link, counts),
        program(node_of_an_identifier, counts),
        program(host_of_an_address, (17, 18)),
        program(fingerprint, counts),
        program(parity_byte, (5, 6)),
    ]
