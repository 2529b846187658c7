"""Users whose rows lie on workers: same bits, one draw for one charge, little traffic."""

import pickle
from concurrent.futures import CancelledError, Executor, Future

import numpy as np
import pytest

from accountant import Chunks, Ledger, Parallel, ParameterError, WorkerChunks
from accountant.ledger.block_answers import BLOCKS_PER_TASK, digest
from accountant.ledger.worker_chunks import Cut
from algorithms import LocalIHT, PrivateLinearRegression
from algorithms.base import row_blocks
from mechanisms import Laplace

USERS, FEATURES = 1100, 6
LENGTHS = [300, 1, 2, 47, 550, 200]
EACH = Laplace(1.0)
BLOCKS = [slice(at, min(at + 40, USERS)) for at in range(0, USERS, 40)]


@pytest.mark.parametrize(("start", "stop"), [(0, 9), (0, 4), (3, 4), (5, 9), (4, 4)])
def test_a_cut_of_a_piece_is_taken_whole_where_it_was_cut(start, stop):
    piece = np.arange(18).reshape(9, 2), np.arange(9)
    cut = Cut(start, stop, 9)
    taken = cut.taken(piece)
    assert [part.tolist() for part in taken] == [part[start:stop].tolist() for part in piece]
    again = cut.whole.taken(taken)
    assert [part.tolist() for part in again] == [part.tolist() for part in taken]
    with pytest.raises(ParameterError, match="the 9 of its length"):
        cut.taken(np.zeros((8, 2)))


def test_every_array_of_a_piece_has_its_length():
    cut = Cut(0, 3, 3)
    with pytest.raises(ParameterError, match="got '5 users'"):
        cut.taken((np.zeros((3, 2)), np.zeros(5)))


def two_rows_a_user(rows):
    return np.vstack([rows, rows])


def test_a_function_of_rows_keeps_one_for_each_user():
    data = WorkerChunks([lambda: np.zeros((3, 2))], lengths=[3], shape=(3, 2))
    assert data.mapped(np.square, (3, 2))[:].shape == (3, 2)
    with pytest.raises(ParameterError, match=r"one a user, rows as in .*\(6, 2\)"):
        data.mapped(two_rows_a_user, (3, 2))[:]


@pytest.mark.parametrize(
    "who", [slice(8, 8), slice(9, None), slice(5, 1), slice(None, None, -1), slice(6, 1, -2)]
)
def test_only_slices_in_rising_order_are_read(who):
    data = WorkerChunks([lambda: np.zeros((3, 1)), lambda: np.ones((5, 1))], [3, 5], (8, 1))
    with pytest.raises(ParameterError, match="one user or more, in rising order"):
        data[who]
    assert data[1:7:4].tolist() == [[0.0], [1.0]]


class Workers(Executor):
    """Gets pickled tasks, runs each of them twice, and takes equal ones for one, as Dask does."""

    def __init__(self):
        self.results, self.tasks = {}, []

    def submit(self, function, *arguments):
        sent = pickle.dumps((function, arguments))
        self.tasks.append(len(sent))
        done = Future()
        if sent not in self.results:
            self.results[sent], again = self.run(sent), self.run(sent)
            assert pickle.dumps(again) == pickle.dumps(self.results[sent])
        done.set_result(self.results[sent])
        return done

    @staticmethod
    def run(sent):
        function, arguments = pickle.loads(sent)
        return function(*arguments)


def some_rows(start, stop):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (USERS, FEATURES))
    return x[start:stop], (x @ [0.5, 0, 0.6, 0, 0, 0])[start:stop]


class Piece:
    def __init__(self, start, stop):
        self.where = start, stop

    def __call__(self):
        return some_rows(*self.where)


def held(lengths=LENGTHS):
    ends = np.cumsum(lengths)
    pieces = [Piece(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    return WorkerChunks(pieces, lengths, (USERS, FEATURES))


@pytest.fixture
def _small_blocks(monkeypatch):
    monkeypatch.setattr(row_blocks, "DENSE_BLOCK_ENTRIES", 240)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("settings", [{}, {"rounds": 3}], ids=["coordinates", "gradients"])
def test_held_rows_change_no_bit(settings):
    made = LocalIHT(epsilon=8.0, sparsity=2, noise_bound=0.1, random_state=0, **settings)
    expected = made.fit(*some_rows(0, USERS))
    coef, entries = expected.coef_.tobytes(), expected.transcript_
    assert np.count_nonzero(expected.coef_)
    for lengths, executor in ((LENGTHS, Workers()), ([USERS], Workers()), (LENGTHS, None)):
        found = made.fit(held(lengths), executor=executor)
        assert found.coef_.tobytes() == coef
        assert [e.output for e in found.transcript_] == [digest(e.output) for e in entries]
        assert [e.who for e in found.transcript_] == [e.who for e in entries]


def released(data, executor=None, rng=0, transcript="full", reduce=None):
    ledger = Ledger(data, Parallel([EACH] * len(BLOCKS)), rng, transcript=transcript)
    answers = ledger.release_blocks(EACH, first_feature, BLOCKS, executor, reduce)
    return ledger, list(answers)


def first_feature(rows):
    return rows[0][:, 0]


def test_reports_or_their_reductions_come_back():
    _, expected = released(some_rows(0, USERS))
    ledger, full = released(held(), Workers())
    assert all(map(np.array_equal, full, expected))
    assert all(map(np.array_equal, [e.output for e in ledger.transcript], expected))
    for data, executor in ((held(), Workers()), (some_rows(0, USERS), None)):
        digests, sums = released(data, executor, transcript="digest", reduce=np.sum)
        assert sums == [part.sum() for part in expected]
        assert [e.output for e in digests.transcript] == list(map(digest, expected))


@pytest.mark.parametrize("data", [held(), some_rows(0, USERS)], ids=["held", "sent"])
def test_a_block_that_runs_again_draws_the_same_noise(data):
    # without a seed too; `Workers` compares both runs
    _, one = released(data, Workers(), rng=None)
    _, two = released(data, Workers(), rng=None)
    assert all(np.all(a != b) for a, b in zip(one, two, strict=True))


def test_equal_blocks_without_a_seed_have_noise_of_their_own():
    rows = np.ones((USERS, FEATURES)), np.ones(USERS)
    _, answers = released(rows, Workers(), rng=None)
    assert len({part.tobytes() for part in answers}) == len(BLOCKS)


def test_tasks_carry_no_rows_and_many_blocks():
    workers = Workers()
    released(held([USERS]), workers, transcript="digest", reduce=np.sum)
    assert len(workers.tasks) == -(-len(BLOCKS) // BLOCKS_PER_TASK)
    sent = released(some_rows(0, USERS), other := Workers()) and sum(other.tasks)
    assert sum(workers.tasks) < 200 * len(BLOCKS) + 1000 < 0.2 * sent
    back = sum(len(pickle.dumps(found)) for found in workers.results.values())
    assert back < 300 * len(BLOCKS)


def test_rows_of_some_users_are_brought_here():
    data = held()
    for who in (slice(0, 5), slice(299, 352, 3), slice(1099, 1100), slice(0, USERS)):
        x, y = data[who]
        assert np.array_equal(x, some_rows(0, USERS)[0][who])
        assert np.array_equal(y, some_rows(0, USERS)[1][who])
    with pytest.raises(ParameterError, match="who must be a slice"):
        data[np.arange(3)]


@pytest.mark.parametrize("block", [[3, 1], slice(0, 9, 2)])
def test_blocks_of_held_rows_are_neighbours(block):
    ledger = Ledger(held(), Parallel([EACH]), 0)
    with pytest.raises(ParameterError, match="a slice of neighbouring users"):
        list(ledger.release_blocks(EACH, first_feature, [block]))
    assert ledger.transcript[0].output is None


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: WorkerChunks([Piece(0, 9)], [9, 1], (10, 6)), "lengths must be one for each"),
        (lambda: WorkerChunks([Piece(0, 9)], [9], (10, 6)), "whose sum is the 10 users"),
        (lambda: WorkerChunks([Piece(0, 9)], [0], (1, 6)), "lengths must"),
        (lambda: WorkerChunks([Piece(0, 9)], [9], 9), "shape must be"),
    ],
)
def test_wrong_pieces_are_refused(made, words):
    with pytest.raises(ParameterError, match=words):
        made()


def test_what_reads_rows_here_refuses_held_ones():
    made = PrivateLinearRegression(epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="array or Chunks: this fit reads rows here"):
        made.fit(held())
    assert isinstance(Chunks(lambda: iter([]), (3, 2)), Chunks)


@pytest.mark.parametrize(
    ("piece", "words"),
    [
        (lambda: (np.full((USERS, FEATURES), np.nan), np.ones(USERS)), "piece.*must be finite"),
        (lambda: (np.ones((USERS - 1, FEATURES)), np.ones(USERS - 1)), "1100 of its length"),
        (lambda: (np.ones((USERS, 2)), np.ones(USERS)), "rows as in"),
    ],
)
def test_bad_rows_are_charged_and_refused(piece, words):
    data = WorkerChunks([piece], [USERS], (USERS, FEATURES))
    ledger = Ledger(data, Parallel([EACH] * len(BLOCKS)), 0)
    with pytest.raises(ParameterError, match=words):
        list(ledger.release_blocks(EACH, first_feature, BLOCKS))
    assert ledger.next is None
    assert [entry.output for entry in ledger.transcript] == [None] * len(BLOCKS)


class Dead(Executor):
    """Its workers died with the pieces."""

    def submit(self, function, *arguments):
        done = Future()
        done.cancel()
        return done


def test_lost_pieces_fail_with_words():
    with pytest.raises(RuntimeError, match=r"lost with their workers.*made again") as error:
        released(held(), Dead())
    assert not isinstance(error.value, CancelledError)
