"""What notes say of a release, and that they change no number of the finding."""

import json
import random

import numpy as np
import pytest

from accountant import PureLoss
from audits import audit, audit_atoms, audit_bits, audit_family, search_pairs, watch
from audits.neighbours.value_spaces import Box
from audits.runs.release_functions import SENTENCES, observations, release_notes, vectorised
from mechanisms import Laplace

ONE = PureLoss(1.0)


def honest(value, rng, size):
    return value + rng.laplace(size=size)


def without_generator(value):
    return value + random.gauss(0, 1)


def ignores_it(value, rng, size):
    return value + np.random.default_rng().laplace(size=size)


def in_place(value, rng):
    value += 1
    return value.sum() + rng.laplace()


def numbers(release, pair, runs=2000):
    return observations(vectorised(release), pair, runs)


def test_each_kind_of_release_has_its_sentence():
    arrays = np.zeros(3), np.ones(3)
    once = (number for number in [1]), (number for number in [2])
    assert numbers(honest, (0.0, 1.0)) == []
    assert numbers(without_generator, (0.0, 1.0)) == [0]
    assert numbers(ignores_it, (0.0, 1.0)) == [1]
    assert numbers(in_place, arrays) == [2]
    assert numbers(lambda value, rng: rng.laplace(), once) == [3]
    assert numbers(lambda value, rng: random.random() + len(value.pop()), ([[1]], [[1], [1]])) == [
        1,
        2,
    ]
    assert arrays[0].tolist() == [0, 0, 0]
    assert release_notes(vectorised(ignores_it), (0.0, 1.0), 100) == (SENTENCES[1],)


def test_few_calls_are_made_and_none_that_fails_is_reported():
    calls = []

    def counted(value, rng):
        calls.append(value)
        return 0.0

    for runs, size in [(10, 1), (1000, 5), (10**6, 16)]:
        calls.clear()
        numbers(counted, (0, 1), runs)
        assert len(calls) == 3 * size

    def raises(value, rng, size):
        raise RuntimeError

    assert numbers(raises, (0, 1)) == []
    assert release_notes(Laplace(1.0), (0, 1), 100) == ()


def test_outputs_that_are_nan_or_errors_repeat():
    def odd(value, rng):
        if rng.random() < 0.5:
            raise ValueError("no")
        return float("nan")

    assert numbers(odd, (0, 1)) == []


@pytest.mark.parametrize(
    "audited",
    [lambda f: audit(f, (0.0, 1.0), ONE, 400, rng=1),
     lambda f: audit(f, (0.0, 1.0), ONE, 400, rng=1, early=True),
     lambda f: watch(f, (0.0, 1.0), ONE, 400, rng=1),
     lambda f: audit_bits(f, (0.0, 1.0), ONE, 400, rng=1),
     lambda f: audit_atoms(f, (0.0, 1.0), ONE, 400, rng=1),
     lambda f: audit_family(f, [(0.0, 1.0)], ONE, {"e": np.abs}, 400, rng=1).members[1].finding,
     lambda f: search_pairs(f, Box(0.0, 1.0), ONE, 1000, 1).finding],
)  # fmt: skip
def test_every_audit_has_notes_and_its_numbers_do_not_depend_on_them(audited):
    assert audited(honest).notes == ()
    assert audited(ignores_it).notes == (SENTENCES[1],)
    assert audited(honest).guesses == audited(honest).guesses


def test_notes_are_sentences():
    assert all(one.endswith(".") and one == json.loads(json.dumps(one)) for one in SENTENCES)
