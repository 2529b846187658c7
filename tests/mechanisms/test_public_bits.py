"""Bits that carry no privacy: known to an adversary, they leave the claim as it is.

Statistical tests have a false alarm of 1e-9 (Hoeffding) and fixed seeds.
"""

import math

import numpy as np
import pytest

from accountant.randomness import generator, public_generator
from mechanisms import BinaryLabel, CubeLinf, HemisphereL2, LocalHashing, PrivUnit
from mechanisms.base.mechanism import CACHE_BYTES
from mechanisms.exact_noise.exact_bernoulli import bernoulli
from tests.laws.common import FALSE_ALARM_RATE

USERS = 200_000
ALLOWED = math.sqrt(math.log(2 / FALSE_ALARM_RATE) / (2 * USERS))


def with_known_bits(patch, module, made, value, seed):
    """Reports under public bits of one seed and secret bits of another."""
    patch.setattr(f"mechanisms.{module}.public_generator", lambda source: np.random.default_rng(9))
    return made.release(np.broadcast_to(value, (USERS, *np.shape(value))), seed)


def test_a_seed_has_one_generator_and_a_cipher_two():
    seeded, cipher = np.random.default_rng(1), generator(None)
    assert public_generator(seeded) is seeded
    fast = public_generator(cipher)
    assert type(fast.bit_generator) is np.random.SFC64
    assert fast.random() != public_generator(cipher).random()


@pytest.mark.parametrize("made", [HemisphereL2(3, 1.0, 0.7), CubeLinf(4, 1.0, 0.7)], ids=repr)
def test_releases_of_the_cipher_take_public_bits_from_elsewhere(made, monkeypatch):
    source, module = generator(None), type(made).__module__
    asked = []

    def spied(given):
        asked.append(given)
        return public_generator(given)

    monkeypatch.setattr(f"{module}.public_generator", spied)
    assert made.release(np.zeros((5, made.dimension)), source).shape == (5, made.dimension)
    assert asked == [source]


def test_the_direction_leaves_one_coin(monkeypatch):
    made, value = HemisphereL2(3, 1.0, 0.7), np.array([0.3, 0.4, 0.0])
    first, second = (
        with_known_bits(monkeypatch, "hemisphere", made, value, seed) for seed in (1, 2)
    )
    kept = (first == second).all(axis=1)
    assert (kept | (first == -second).all(axis=1)).all()
    # two coins agree with probability keep^2 + (1 - keep)^2
    assert abs(kept.mean() - (0.7**2 + 0.3**2)) < ALLOWED
    # of another value the same two candidates, each with probability keep or 1 - keep
    other = with_known_bits(monkeypatch, "hemisphere", made, -value[::-1], 1)
    assert (np.abs(other) == np.abs(first)).all()


def test_the_rounding_leaves_randomised_response(monkeypatch):
    made = BinaryLabel(2.0, 0.7)
    up = np.random.default_rng(9).random(USERS) < (1 + 0.5 / 2.0) / 2
    reports = with_known_bits(monkeypatch, "binary_label", made, 0.5, 1) > 0
    for side in (True, False):
        assert abs((reports == up)[up == side].mean() - 0.7) < 2 * ALLOWED


@pytest.mark.parametrize("dimension", [3, 4])
def test_the_rounded_corner_leaves_the_law_of_a_corner(monkeypatch, dimension):
    made, value = CubeLinf(dimension, 1.0, 0.7), np.full(dimension, 0.5)
    reports = with_known_bits(monkeypatch, "cube", made, value, 1) > 0
    corners = (np.random.default_rng(9).random(reports.shape) - 0.5) * 2 < value
    agreeing = (reports == corners).sum(axis=1)
    own = np.ones(dimension)
    law = np.zeros(dimension + 1)
    ends = made.support.make_rows()
    np.add.at(law, (ends > 0).sum(axis=1), np.exp([made.log_density(end, own) for end in ends]))
    seen = np.bincount(agreeing, minlength=dimension + 1) / USERS
    assert np.abs(seen - law).max() < ALLOWED


def test_the_hash_leaves_randomised_response(monkeypatch):
    made = LocalHashing(5, 3, 0.6)
    first = with_known_bits(monkeypatch, "local_hashing", made, 2, 1)
    second = with_known_bits(monkeypatch, "local_hashing", made, 4, 2)
    assert (first[:, :2] == second[:, :2]).all()
    assert abs(made.supports(first, 2).mean() - 0.6) < ALLOWED


def test_the_coin_is_the_only_secret_of_the_direction(monkeypatch):
    # the report is a function of the public bits and of one exact coin for each user
    made, value = HemisphereL2(2, 1.0, 0.7), np.array([0.6, 0.8])
    reports = with_known_bits(monkeypatch, "hemisphere", made, value, 5)
    secret = np.random.default_rng(5)
    step = max(64, CACHE_BYTES // 16)
    blocks = [min(step, USERS - start) for start in range(0, USERS, step)]
    coins = [bernoulli(0.7, (users,), secret) for users in blocks]
    ahead = reports @ value > 0
    assert (ahead == np.concatenate(coins)).all()


def test_public_bits_of_a_user_do_not_depend_on_the_others(monkeypatch):
    # what a batch looks like for one user must not show whether another's vector is zero
    made, users = PrivUnit(3, 0.25, 0.8), 2 * max(64, CACHE_BYTES // 24)
    monkeypatch.setattr(
        "mechanisms.priv_unit.public_generator", lambda source: np.random.default_rng(9)
    )
    asked = []

    def seen(axes, *_):
        asked.append(axes)
        return axes

    monkeypatch.setattr("mechanisms.priv_unit.directions", seen)
    values = np.full((users, 3), 0.1)
    values[-1] = 0.0
    for first in (0.1, 0.0):
        values[0] = first
        made.release(values, 1)
    one, other = np.concatenate(asked).reshape(2, users, 3)
    assert (one[1:] == other[1:]).all()
