"""Law: a ledger refuses before it looks or draws, and charges before it looks."""

import sys
import threading

import numpy as np
import pytest

from accountant import Ledger, OffPlan, Parallel, ParameterError, PureLoss, Repeat, Sequential
from mechanisms import Gaussian, Laplace, NoisyMax, RandomizedResponse

A, B = Laplace(1.0), Gaussian(2.0)
COIN = RandomizedResponse(2, 0.75)
DATA = np.arange(6.0)
USERS = np.array([0, 1, 0, 1, 1, 0])


class Spy:
    """A query that counts how often it was called."""

    def __init__(self, answer=lambda data: data.sum()):
        self.calls, self.answer = 0, answer

    def __call__(self, data):
        self.calls += 1
        return self.answer(data)


def refused(ledger, ask, error=OffPlan):
    """The request raises, the query was not called, nothing was drawn or written."""
    spy = Spy()
    noise, entries, allowed = ledger._noise.bit_generator.state, len(ledger.transcript), ledger.next
    with pytest.raises(error) as caught:
        ask(spy)
    assert spy.calls == 0
    assert ledger._noise.bit_generator.state == noise
    assert len(ledger.transcript) == entries
    assert ledger.next == allowed
    return str(caught.value)


def test_off_plan_is_refused_before_looking_or_drawing():
    ledger = Ledger(DATA, A + B, rng=1)
    for wrong in (B, Laplace(1.0 + 1e-15), Laplace(2.0)):
        words = refused(ledger, lambda spy, wrong=wrong: ledger.release(wrong, spy))
        assert repr(A) in words
    ledger.release(A, Spy())
    ledger.release(B, Spy())
    assert "nothing more" in refused(ledger, lambda spy: ledger.release(B, spy))


def test_an_equal_mechanism_is_the_same_and_a_loss_leaf_takes_any_of_that_loss():
    ledger = Ledger(DATA, Sequential([A, PureLoss(0.5)]), rng=1)
    ledger.release(Laplace(1), Spy())
    refused(ledger, lambda spy: ledger.release(Laplace(2.0), spy))  # its loss is not PureLoss(.5)
    ledger = Ledger(DATA, A.loss, rng=1)
    ledger.release(Laplace(7.0, 7.0), Spy())


@pytest.mark.parametrize("wrong", [3, None, "laplace", A.loss])
def test_what_is_no_mechanism_is_refused(wrong):
    ledger = Ledger(DATA, A, rng=1)
    words = refused(ledger, lambda spy: ledger.release(wrong, spy), ParameterError)
    assert "mechanism" in words


def test_a_label_is_refused_where_no_answers_are_stored():
    ledger = Ledger(DATA, A, rng=1)
    words = refused(ledger, lambda spy: ledger.release(A, spy, label="sum"), ParameterError)
    assert "label must be None at this gate: only the ledger of a book" in words
    ledger.release(A, Spy(), label=None)
    assert ledger.next is None


def test_a_failing_query_is_charged_and_recorded():
    ledger = Ledger(DATA, 2 * A, rng=1)
    with pytest.raises(ZeroDivisionError):
        ledger.release(A, lambda data: 1 / 0)
    assert len(ledger.transcript) == 1
    assert ledger.transcript[0].output is None
    ledger.release(A, Spy())
    refused(ledger, lambda spy: ledger.release(A, spy))


def test_a_value_that_is_none_is_charged_too():
    ledger = Ledger(DATA, A, rng=1)
    with pytest.raises(ParameterError):
        ledger.release(A, lambda data: np.nan)
    refused(ledger, lambda spy: ledger.release(A, spy))


def test_outputs_are_read_only_and_the_transcript_keeps_them():
    ledger = Ledger(DATA, A, rng=1)
    output = ledger.release(A, lambda data: data, shape=DATA.shape)
    with pytest.raises(ValueError, match="read-only"):
        output += 1
    entry = ledger.transcript[0]
    assert entry.mechanism == A
    assert entry.who is None
    assert entry.output.tobytes() == output.tobytes()


def test_a_query_may_look_and_not_touch():
    def touch(data):
        data += 1
        return data.sum()

    with pytest.raises(ValueError, match="read-only"):
        Ledger(DATA, A, rng=1).release(A, touch)
    assert DATA.flags.writeable


def test_a_digest_keeps_no_answer():
    ledger = Ledger(DATA, A, rng=1, transcript="digest")
    ledger.release(A, lambda data: data, shape=DATA.shape)
    assert len(ledger.transcript[0].output) == 64
    with pytest.raises(ParameterError, match="transcript must be one of"):
        Ledger(DATA, A, transcript="none")


def test_parallel_users_open_parts_and_continue_them():
    ledger = Ledger(USERS, Parallel([COIN + COIN, COIN]), rng=1)

    def ask(who):
        return lambda spy: ledger.release_each(COIN, spy, who)

    spy = Spy(lambda rows: rows)
    ledger.release_each(COIN, spy, [0, 1, 2])  # opens the first part
    refused(ledger, ask([2, 3]))  # users of the first part and of none
    ledger.release_each(COIN, spy, [0, 1, 2])  # continues it
    refused(ledger, ask([0, 1, 2]))  # the part is spent
    refused(ledger, ask([3, 3]), ParameterError)  # a user twice
    refused(ledger, ask([9]), ParameterError)  # nobody
    refused(ledger, ask([-1]), ParameterError)
    refused(ledger, lambda s: ledger.release(COIN, s))  # not user by user
    ledger.release_each(COIN, spy, slice(3, 6))
    assert spy.calls == 3
    assert ledger.next is None
    refused(ledger, ask([3, 4, 5]))


def test_a_third_group_has_no_part():
    ledger = Ledger(USERS, Parallel([COIN + COIN] * 2), rng=1)
    ledger.release_each(COIN, Spy(lambda rows: rows), [0])
    ledger.release_each(COIN, Spy(lambda rows: rows), [1])
    words = refused(ledger, lambda spy: ledger.release_each(COIN, spy, [2]))
    assert "all parts have their users" in words


def test_a_query_of_each_user_sees_their_rows_only():
    ledger = Ledger((USERS, DATA), Parallel([COIN]), rng=1)
    seen = []
    ledger.release_each(COIN, lambda rows: seen.append(rows) or rows[0], np.arange(6) > 3)
    assert seen[0][0].tolist() == [1, 0]
    assert seen[0][1].tolist() == [4.0, 5.0]


def test_releases_after_a_parallel_belong_to_the_next_node():
    ledger = Ledger(USERS, Parallel([COIN, COIN]) + A + Parallel([COIN]), rng=1)
    ledger.release_each(COIN, Spy(lambda rows: rows), [0, 1])
    refused(ledger, lambda spy: ledger.release(A, spy))
    ledger.release_each(COIN, Spy(lambda rows: rows), [2, 3])
    ledger.release(A, Spy())
    ledger.release_each(COIN, Spy(lambda rows: rows))
    assert ledger.next is None


def test_one_charge_pays_for_one_value():
    scores = NoisyMax(2.0)
    for mechanism, batch, shape in (
        (scores, lambda data: np.tile(data, (50, 1)), DATA.shape),
        (COIN, lambda data: np.full(1000, USERS[0]), None),
    ):
        ledger = Ledger(DATA, mechanism, rng=1)
        with pytest.raises(ParameterError, match=r"a single number|of shape \(\d+,\), as declared"):
            ledger.release(mechanism, batch, shape=shape)
        assert ledger.next is None  # it was charged, and answered nothing
        assert ledger.transcript[0].output is None
    for local, value, shape in (
        (COIN, lambda rows: rows[0], None), (COIN, lambda rows: rows[:2], None),
        (scores, lambda rows: rows, 3), (A, lambda rows: rows.sum(), None),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=r"one.* for each of 6 users"):
            Ledger(USERS, Parallel([local]), rng=1).release_each(local, value, shape=shape)
    vectors = Ledger(np.ones((6, 3)), Parallel([scores]), rng=1)
    assert vectors.release_each(scores, lambda rows: rows, shape=3).shape == (6,)


def test_a_query_may_not_ask_the_ledger():
    ledger = Ledger(DATA, 2 * A, rng=1)
    with pytest.raises(OffPlan, match="may not ask the gate itself"):
        ledger.release(A, lambda data: ledger.release(A, np.sum))
    assert len(ledger.transcript) == 1
    ledger.release(A, np.sum)


def test_parallels_within_parallels_end_with_their_group():
    plan = Parallel([Parallel([COIN, COIN]), COIN + Parallel([COIN, COIN])]) + A
    ledger = Ledger(USERS[:3], plan, rng=1)
    for who in ([0], [1, 2], [1, 2]):
        ledger.release_each(COIN, lambda rows: rows, who)
    assert ledger.next == A


def test_a_long_plan_is_not_unrolled():
    ledger = Ledger(DATA, Repeat(Repeat(A, 10**6), 10**6), rng=1)
    ledger.release(A, Spy())
    assert ledger.next == A


def test_coins_are_public_and_apart_from_the_noise():
    first, second = (Ledger(DATA, 3 * A, rng=5) for _ in range(2))
    first.release(A, Spy())
    assert first.coins.random() == second.coins.random()
    # whoever holds the coins cannot make the noise again from their seed
    for ledger in (first, Ledger(DATA, A)):
        entropy = ledger.coins.bit_generator.seed_seq.entropy
        for key in ((), (0,), (1,)):
            remade = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))
            assert remade.bit_generator.state["state"] != ledger._noise.bit_generator.state["state"]
    again = np.random.default_rng(np.random.SeedSequence(first.coin_words)).random()
    assert again == Ledger(DATA, A, rng=5).coins.random()
    assert again != np.random.default_rng(5).random()


def test_same_seed_same_answers_and_no_seed_other_answers():
    draws = [float(Ledger(DATA, A, rng=seed).release(A, np.sum)) for seed in (5, 5, None, None)]
    assert draws[0] == draws[1]
    assert draws[2] != draws[3]


def test_shape_is_that_of_the_public_array_or_the_first():
    assert Ledger(DATA, A).shape == (6,)
    assert Ledger((np.zeros((6, 2)), DATA), A).shape == (6, 2)
    assert Ledger(DATA, A, public=np.zeros((6, 3))).shape == (6, 3)


BAD_DATA = [
    [],
    1.0,
    (DATA, DATA[:3]),
    [[1.0], [1.0, 2.0]],
    [1.0, np.nan],
    [1.0, np.inf],
    [object()],
    (DATA, [np.nan]),
]


@pytest.mark.parametrize("data", BAD_DATA, ids=lambda one: repr(one).split(" at 0x")[0])
def test_data_that_is_none_is_refused(data):
    with pytest.raises(ParameterError, match=r"data.* must be"):
        Ledger(data, A)


@pytest.mark.parametrize(
    "rng", [True, -1, 1.5, "1", np.random.RandomState(1)], ids=lambda one: str(one)[:11]
)
def test_an_rng_that_is_none_is_refused(rng):
    with pytest.raises(ParameterError, match="rng must be"):
        Ledger(DATA, A, rng=rng)


def test_threads_never_spend_more_than_the_plan():
    # 41 is no multiple of 8: threads that look all at once have fewer releases left than threads
    ledger, spent = Ledger(DATA, 41 * A, rng=1), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def spend():
        for _ in range(20):
            try:
                ledger.release(A, np.sum)
                spent.append(1)
            except OffPlan:
                pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert len(spent) == len(ledger.transcript) == 41
