"""Types, lengths, errors and atoms of any output are events, each no dearer than the output."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from accountant import ApproxLoss, ParameterError, PureLoss
from audits.attacks.output_codes import (
    LEVEL_EDGES,
    MIN_PILOT_COUNT,
    _pilot_epsilon_lower,
    most_informative_code,
)
from audits.attacks.output_structure import CODE_NAMES, audit_atoms, listed_outputs, output_parts
from audits.zoo.catalogue import SPECIMENS

SURE = 1 - 1e-9
# a rare key, 0.013 against 0.0049, takes more runs: see its own test
BY_ATOMS = [one for one in SPECIMENS if one.caught_by == "atoms" and one.name != "rare_key"]
# what is to be seen, of one coin that tells (0.9 against 0.1); the honest differ in nothing
LEAKS = {
    "none": lambda secret: None if secret else 1.0,
    "string": lambda secret: "yes" if secret else "no",
    "length": lambda secret: [0] * (2 + secret),
    "dtype": lambda secret: np.float32(1.0) if secret else np.float64(1.0),
    "int or float": lambda secret: 1 if secret else 1.0,
    "shape": lambda secret: np.zeros((2, 1) if secret else (1, 2)),
    "a part": lambda secret: (3.0, "x", secret),
    "keys": lambda secret: {"a": 1} if secret else {"b": 1},
    "not a number": lambda secret: math.nan if secret else 0.0,
    "missing part": lambda secret: (None, 1.0) if secret else (0.0, 1.0),
    "class": lambda secret: Mute() if secret else object(),
    "nested": lambda secret: ((1, (2, secret)),),
}


class Mute:
    """Equals nothing, and shows something else each time."""

    def __eq__(self, other):
        return False

    __hash__ = None

    def __repr__(self):
        return str(np.random.default_rng().random())


def coin(see):
    return lambda value, rng: see(bool(rng.random() < (0.9 if value else 0.1)))


@pytest.mark.parametrize("name", LEAKS)
def test_everything_an_output_shows_is_an_event(name):
    found = audit_atoms(coin(LEAKS[name]), (0.0, 1.0), PureLoss(1.0), 4000, SURE, rng=1)
    assert found.outcome.name == "FALSIFIED"
    # the coin is all there is: no bound above it, at a rate of 1e-9
    assert 1.0 < found.epsilon_lower <= math.log(9)


@pytest.mark.parametrize("name", LEAKS)
def test_and_tells_nothing_when_the_coin_is_fair(name):
    def fair(value, rng):
        return LEAKS[name](bool(rng.random() < 0.5))

    found = audit_atoms(fair, (0.0, 1.0), PureLoss(0.2), 4000, SURE, rng=1)
    # of objects without fields nothing is seen but their class
    assert bool(found.unseen) == (name == "class")
    assert found.outcome.name == ("INCONCLUSIVE" if name == "class" else "SURVIVED")


@pytest.mark.parametrize("one", BY_ATOMS, ids=lambda one: one.name)
def test_the_zoos_specimens(one):
    found = audit_atoms(one.implementation, one.pair, one.claim, 10_000, SURE, rng=2)
    assert found.outcome is one.expected
    if one.true_epsilon is not None:
        assert found.epsilon_lower <= one.true_epsilon
    assert found.witness.startswith("by ")


def test_a_rare_key_is_a_delta():
    def key(count, rng):
        return ["key"] if count and rng.random() < 0.05 else []

    broken = audit_atoms(key, (0, 1), ApproxLoss(1.0, 0.005), 20_000, rng=1)
    assert broken.outcome.name == "FALSIFIED"
    assert broken.delta == 0.005
    honest = audit_atoms(key, (0, 1), ApproxLoss(1.0, 0.05), 20_000, SURE, rng=1)
    assert honest.outcome.name == "SURVIVED"


def test_an_answer_without_noise_is_known_by_what_it_would_be():
    def answer(records):
        return float(records.sum()) * 1.1

    def release(records, rng, size):
        bare = rng.random(size) < 0.05
        return np.where(bare, answer(records), answer(records) + rng.laplace(scale=9.0, size=size))

    pair = np.array([1.0, 2.0]), np.array([1.0, 2.5])
    found = audit_atoms(release, pair, PureLoss(1.0), 20_000, SURE, rng=1, truth=answer)
    assert found.outcome.name == "FALSIFIED"


def test_exceptions_are_outputs_and_their_words_are_not_told():
    def fails(value, rng):
        if value and rng.random() < 0.5:
            raise KeyError("secret 4711")
        return 0.0

    found = audit_atoms(fails, (0.0, 1.0), PureLoss(1.0), 2000, SURE, rng=1)
    assert found.outcome.name == "FALSIFIED"
    assert "4711" not in found.witness
    both = listed_outputs(fails)(1.0, np.random.default_rng(1), 50)
    assert set(both) == {KeyError, 0.0}


def test_a_sized_function_that_raises_is_asked_one_by_one():
    def fails(value, rng, size):
        if rng.random() < 0.5:
            raise OverflowError
        return [1.0] * size

    outputs = [listed_outputs(fails)(1.0, np.random.default_rng(seed), 40) for seed in range(6)]
    assert {len(one) for one in outputs} == {40}
    assert sum(set(one) == {1.0, OverflowError} for one in outputs) > 1  # the one call raised
    assert [1.0] * 40 in outputs  # the one call did not raise


def test_a_sized_function_that_returns_too_few_is_asked_one_by_one():
    def one_at_a_time(value, rng, size):
        return [value]

    draw = listed_outputs(one_at_a_time)
    assert draw(1.0, np.random.default_rng(1), 7) == [1.0] * 7
    assert draw(1.0, np.random.default_rng(1), 0) == []


def test_parts_of_everything():
    assert output_parts((1, "a")) == [1, "a"]
    assert output_parts({"k": 2}) == ["k", 2]
    assert output_parts(np.array([[1, 2]])) == [1, 2]
    assert output_parts("word") == ["word"]
    assert output_parts(None) == [None]


def test_what_is_seen_seldom_is_one_event():
    # continuous outputs are all different: none may be taken for an atom
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 2**60, (2, 1000, 1))
    levels, _ = most_informative_code(first, second, ["the output"])
    assert not levels(rng.integers(0, 2**60, (1000, 1))).any()
    # an atom seen often on one side is worth its log-odds
    first[: 20 * MIN_PILOT_COUNT] = 7
    levels, words = most_informative_code(first, second, ["the output"])
    assert levels(np.array([[7]]))[0] >= 5
    assert words == "the output"


@pytest.mark.parametrize("seed", range(20))
def test_what_pilot_runs_promise_is_that_of_the_best_cut_of_scores(seed):
    rng = np.random.default_rng(seed)
    lean = rng.choice([-1.0, 0.0, 0.3, 1.0])
    # tenths are often exactly an edge
    first, second = (
        np.round(rng.normal(side * lean, 1.5, rng.integers(1, 80)), 1) for side in (1, -1)
    )
    promised = [0.0]
    for edge in LEVEL_EDGES:
        right = sum(x >= edge for x in first) + sum(x <= -edge for x in second) + 1
        wrong = sum(x <= -edge for x in first) + sum(x >= edge for x in second) + 1
        # the variance of a log-odds is 1 / right + 1 / wrong
        promised.append(math.log(right / wrong) - 2 * math.sqrt(1 / right + 1 / wrong))
    assert _pilot_epsilon_lower(first, second) == pytest.approx(max(promised), abs=1e-12)


def test_the_code_that_promises_most_is_chosen():
    rng = np.random.default_rng(4)
    first, second = rng.integers(0, 2, (2, 400, 3))
    first[:300, 1], second[:300, 1] = 0, 1  # this code tells more than the others
    levels, words = most_informative_code(first, second, ["a", "b", "c"])
    assert words == "b"
    assert (levels(np.array([[0, 0, 0], [1, 0, 1]])) > 0).all()
    assert (levels(np.array([[0, 1, 0], [1, 1, 1]])) < 0).all()
    # three codes that tell little each tell more together
    for side, codes in ((1, first), (0, second)):
        codes[:] = np.where(rng.random((400, 3)) < 0.75, side, 1 - side)
    levels, words = most_informative_code(first, second, ["a", "b", "c"])
    assert words == "all events together"
    found = levels(np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert found[0] > found[1] > 0 > found[2] > found[3]


def test_false_alarms_on_a_claim_that_is_exactly_true():
    # strings kept with e / (1 + e), 120 repeats at nominal 20 %: above is a chance of 1e-6
    keep = math.e / (1 + math.e)

    def word(value, rng):
        return "yes" if (rng.random() < keep) == value else "no"

    alarms = sum(
        audit_atoms(word, (False, True), PureLoss(1.0), 300, 0.8, rng=s).outcome.name == "FALSIFIED"
        for s in range(120)
    )
    assert alarms <= binom.ppf(1 - 1e-6, 120, 0.2)


def test_a_seed_repeats():
    one, two = (
        audit_atoms(coin(LEAKS["none"]), (0, 1), PureLoss(1.0), 1000, rng=5) for _ in range(2)
    )
    assert (one.guesses, one.seed, one.runs) == (two.guesses, 5, 1000)


BAD = [
    {"runs": 0}, {"runs": True}, {"confidence": 0.0}, {"delta": 2.0}, {"claim": "3"}, {"rng": -1},
    {"pair": None}, {"pair": (1,)}, {"release": 3},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_nonsense_is_refused_before_a_single_run(bad):
    def release(value, rng):
        raise AssertionError("called")

    given = {"release": release, "pair": (0, 1), "claim": PureLoss(1.0), "runs": 1000, **bad}
    with pytest.raises(ParameterError, match="must be"):
        audit_atoms(**given)


def test_the_codes_have_names():
    assert len(set(CODE_NAMES)) == len(CODE_NAMES)
