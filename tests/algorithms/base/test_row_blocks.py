"""Same seed, same bits: however the data come, whatever works on them."""

import contextlib
import math
import os
import pickle
import signal
import tracemalloc
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from numpy.lib import NumpyVersion
from scipy import sparse
from sklearn.base import clone

from accountant import OffPlan, ParameterError, WorkerChunks
from accountant.ledger import chunks
from accountant.ledger.chunks import Chunks
from accountant.ledger.ledger import Ledger
from accountant.plans.parallel import Parallel
from algorithms import (
    FrankWolfe,
    GaussianFrankWolfe,
    LabelIHT,
    LabelLasso,
    LabelSGD,
    LocalIHT,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticLasso,
    PrivateLogisticRegression,
    SparseERM,
    ThresholdedRegression,
)
from algorithms.base import column_bounds
from algorithms.base import row_blocks as blocks
from algorithms.base.clipped_gradient_descent import (
    BlockClippedGradient,
    FeatureMap,
    KnownLengths,
)
from algorithms.base.glm_losses import HALF_SQUARED, ScoreLoss
from algorithms.frank_wolfe.convex_sets import L2Ball
from algorithms.label_privacy import label_sgd
from algorithms.sparse_regression import local_iht
from audits import replay
from mechanisms import Laplace

USERS, FEATURES = 1100, 6
LOCAL = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, rounds=3, random_state=0)
LABEL = LabelIHT(epsilon=1.0, delta=1e-3, sparsity=2, y_bound=2.0, rounds=4, random_state=0)
CENTRAL = SparseERM(
    epsilon=1.0, delta=1e-5, sparsity=2, rounds=4, classes=[-1.0, 1.0], random_state=0
)
SAMPLED = SparseERM(
    epsilon=1.0, delta=1e-5, sparsity=2, rounds=4, rate=0.3, loss="squared", random_state=0
)
LASSO = PrivateLasso(epsilon=4.0, delta=1e-5, rounds=8, random_state=0)
LOGISTIC = PrivateLogisticLasso(
    epsilon=4.0, delta=1e-5, rounds=8, classes=[-1.0, 1.0], random_state=0
)
ALL = pytest.mark.parametrize(
    "estimator",
    [LOCAL, LABEL, CENTRAL, SAMPLED, LASSO, LOGISTIC],
    ids=["local", "label", "central", "sampled", "lasso", "logistic"],
)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Many blocks of few users: 40 rows of 6."""
    monkeypatch.setattr(blocks, "DENSE_BLOCK_ENTRIES", 240)
    monkeypatch.setattr(blocks, "SPARSE_BLOCK_ROWS", 40)


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (USERS, FEATURES)) * (rng.random((USERS, FEATURES)) < 0.5)
    return x, np.where(x[:, 0] - x[:, 1] + 0.1 * rng.normal(size=USERS) > 0, 1.0, -1.0)


@pytest.fixture(autouse=True)
def streamed(monkeypatch):
    """Few users are read as many are, a block at a time in every round."""
    monkeypatch.setattr(chunks, "HELD_BYTES", 0)


def cut(x, y, sizes):
    ends = np.cumsum(sizes)
    assert ends[-1] == len(y)
    return [
        (x[end - size : end], y[end - size : end]) for size, end in zip(sizes, ends, strict=True)
    ]


@ALL
def test_pieces_memory_maps_and_executors_change_no_bit(estimator, data, tmp_path):
    x, y = data
    expected = estimator.fit(x, y).coef_.tobytes()
    np.save(tmp_path / "x.npy", x)
    assert estimator.fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y).coef_.tobytes() == expected
    for sizes in ([USERS], [1, 0, 99, 1000], [7] * 157 + [1]):
        pieces = Chunks(lambda sizes=sizes: iter(cut(x, y, sizes)), x.shape)
        assert estimator.fit(pieces).coef_.tobytes() == expected
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(7) as many:
        for pool in (one, many):
            assert estimator.fit(x, y, executor=pool).coef_.tobytes() == expected
            assert estimator.fit(pieces, executor=pool).coef_.tobytes() == expected


@pytest.mark.parametrize("estimator", [LOCAL, LABEL, CENTRAL, SAMPLED])
def test_sparse_pieces_change_no_bit(estimator, data):
    x, y = data
    thin = sparse.csr_array(x)
    expected = estimator.fit(thin, y).coef_
    pieces = Chunks(lambda: iter(cut(thin, y, [300, 800])), thin.shape)
    assert estimator.fit(pieces).coef_.tobytes() == expected.tobytes()
    assert expected == pytest.approx(estimator.fit(x, y).coef_, abs=1e-12)


def test_other_processes_change_no_bit(data):
    x, y = data[0][:150], data[1][:150]
    pieces = Chunks(lambda: iter(cut(x, y, [70, 80])), x.shape)
    every = (LOCAL, LABEL, CENTRAL, LASSO, LOGISTIC)
    expected = [one.fit(x, y).coef_.tobytes() for one in every]
    with ProcessPoolExecutor(2) as pool:
        found = [one.fit(pieces, executor=pool).coef_.tobytes() for one in every]
    assert found == expected


@contextlib.contextmanager
def cluster_of_two(*, processes=True):
    """Two workers that are sent all bytes, in processes of their own or in threads of this one."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp://",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
        client.get_executor() as pool,
    ):
        yield client, pool


def held(client, x, y, scattered=False):
    """Pieces that workers make, or that were sent to them."""
    pieces = cut(x, y, [130, 170])
    lengths = [len(piece[1]) for piece in pieces]
    there = client.scatter(pieces) if scattered else client.map(tuple, pieces)
    return WorkerChunks(there, lengths, x.shape)


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_cluster_changes_no_bit(processes, data):
    x, y = data[0][:300], data[1][:300]
    coordinates = LocalIHT(epsilon=8.0, sparsity=2, noise_bound=0.1, random_state=0)
    every = (LOCAL, LABEL, CENTRAL)
    expected = [one.fit(x, y).coef_.tobytes() for one in (*every, LOCAL, coordinates)]
    with cluster_of_two(processes=processes) as (client, pool):
        found = [one.fit(x, y, executor=pool).coef_.tobytes() for one in every]
        there = held(client, x, y)
        found += [one.fit(there, executor=pool).coef_.tobytes() for one in (LOCAL, coordinates)]
    assert found == expected


@pytest.mark.slow
def test_pieces_of_a_dead_worker_are_made_again_or_missed(data):
    x, y = data[0][:300], data[1][:300]
    expected = LOCAL.fit(x, y).coef_.tobytes()
    with cluster_of_two() as (client, pool):
        made, sent = held(client, x, y), held(client, x, y, scattered=True)
        for there in (made, sent):
            assert LOCAL.fit(there, executor=pool).coef_.tobytes() == expected
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        assert LOCAL.fit(made, executor=pool).coef_.tobytes() == expected
        with pytest.raises(RuntimeError, match="lost with their workers"):
            LOCAL.fit(sent, executor=pool)


def test_a_transcript_and_a_replay_know_the_blocks(data):
    x, y = data
    fitted = LOCAL.fit(x, y)
    users = [index for entry in fitted.transcript_ for index in range(*entry.who.indices(USERS))]
    assert users == list(range(USERS))
    assert len(fitted.transcript_) == len(fitted.plan_.parts) > 3
    other = x.copy()
    other[700] = -1
    found = replay(LOCAL, (x, y), (other, y), rng=0)
    assert found.sound
    assert 0 < abs(found.loss) <= 2.0 + 1e-9


@pytest.mark.parametrize("seed", [None, 0])
def test_every_block_has_noise_of_its_own(seed):
    x, y = np.ones((USERS, FEATURES)), np.ones(USERS)
    made = LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, rounds=1, random_state=seed)
    entries = [
        entry for _ in range(2 if seed is None else 1) for entry in made.fit(x, y).transcript_
    ]
    assert len({np.abs(entry.output[0, 0]) for entry in entries}) == len(entries) > 20
    assert {entry.seeded for entry in entries} == {seed is not None}


def test_memory_is_that_of_a_few_blocks(monkeypatch):
    monkeypatch.undo()  # blocks as they are
    monkeypatch.setattr(local_iht, "FULL_TRANSCRIPT_NUMBERS", 0)  # digests of the reports
    users, features = 200_000, 100

    def read():
        for seed in range(users // 4000):
            rng = np.random.default_rng(seed)
            yield rng.uniform(-1, 1, (4000, features)), rng.normal(size=4000)

    tracemalloc.start()
    LocalIHT(epsilon=2.0, sparsity=2, noise_bound=0.1, rounds=2).fit(Chunks(read(), (users, 100)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # features alone are 160 MB


def laplaces(blocks=3):
    each = Laplace(1.0)
    return each, Ledger(np.arange(30.0), Parallel([each] * blocks), rng=0)


def test_a_gate_is_busy_until_the_last_block_was_taken():
    each, ledger = laplaces()
    reports = ledger.release_blocks(each, np.copy, [slice(0, 10), slice(10, 30)])
    assert next(reports).shape == (10,)
    with pytest.raises(OffPlan, match="until all blocks are taken"):
        ledger.release_each(each, np.copy, [29])
    assert next(reports).shape == (20,)
    assert next(reports, None) is None


def test_a_query_on_another_thread_may_not_ask_the_gate():
    each, ledger = laplaces()

    def asks(rows):
        ledger.release_each(each, np.copy, [29])
        return rows

    with pytest.raises(OffPlan, match="a query may not ask the gate itself"):
        list(ledger.release_blocks(each, asks, [slice(0, 10), slice(10, 20)]))


def test_blocks_off_the_plan_are_refused_and_failures_are_charged():
    each, ledger = laplaces(2)
    with pytest.raises(OffPlan, match="belong to different parts"):
        list(ledger.release_blocks(each, np.copy, [slice(0, 10), slice(5, 15)]))
    each, ledger = laplaces(2)

    def fails(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(ledger.release_blocks(each, fails, [slice(0, 10), slice(10, 20)]))
    assert [entry.output for entry in ledger.transcript] == [None, None]
    with pytest.raises(OffPlan):
        ledger.release_each(each, np.copy, slice(0, 10))


def test_chunks_say_what_is_wrong(data):
    x, y = data
    with pytest.raises(ParameterError, match="the 1101 of the shape"):
        LOCAL.fit(Chunks(cut(x, y, [USERS]), (USERS + 1, FEATURES)))
    with pytest.warns(UserWarning, match="hold more users"):
        LOCAL.fit(Chunks(cut(x, y, [USERS]), (USERS - 1, FEATURES)))
    with pytest.raises(ParameterError, match="a function that starts anew"):
        LABEL.fit(Chunks(iter(cut(x, y, [USERS])), x.shape))
    with pytest.raises(ParameterError, match="rows as in"):
        LOCAL.fit(Chunks([(x[:, 1:], y)], x.shape))
    with pytest.raises(ParameterError, match="a target for each row"):
        LOCAL.fit(Chunks([(x, y[1:])], x.shape))
    x[900, 2] = np.nan  # counts as 0: a refusal would say that this record is there
    assert np.isfinite(LOCAL.fit(Chunks(cut(x, y, [USERS]), x.shape)).coef_).all()
    for pieces, shape in ((3, (1, 1)), ([], ()), ([], (0, 3)), ([], (math.nan, 3))):
        with pytest.raises(ParameterError):
            Chunks(pieces, shape)
    with pytest.raises(ParameterError, match="the chunks are pairs"):
        LOCAL.fit(Chunks([(x, y)], x.shape), y)
    with pytest.raises(ParameterError, match="in memory"):
        LabelLasso(epsilon=1.0, delta=1e-4, y_bound=1.0, noise_bound=0.1).fit(
            Chunks(lambda: iter([data]), x.shape)
        )


@pytest.mark.parametrize("randomizer", ["unary", "subset", "response", "duchi"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_one_pass_over_private_labels_in_pieces_and_on_executors(monkeypatch, loss, randomizer):
    monkeypatch.setattr(label_sgd, "BLOCK_COEFFICIENTS", 200)  # blocks of 50 users
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(430, 5)), rng.integers(0, 4, 430).astype(float)
    made = LabelSGD(
        epsilon=1.0, k=4, loss=loss, diameter=5.0, randomizer=randomizer, batch=10,
        random_state=3,
    )  # fmt: skip
    expected = made.fit(x, y).coef_.tobytes()
    with ThreadPoolExecutor(3) as pool, ProcessPoolExecutor(1) as other:
        for executor in (pool, other):
            assert made.fit(x, y, executor=executor).coef_.tobytes() == expected
    found = {
        made.fit(Chunks(lambda sizes=sizes: iter(cut(x, y, sizes)), x.shape)).coef_.tobytes()
        for sizes in ([430], [7, 0, 23, 400], [1] * 430)
    }
    assert len(found) == 1  # in their order, where arrays are shuffled


SIGNS = np.where(np.arange(64) % 2, 1.0, -1.0)


OF_THE_ERM = {"epsilon": 1.0, "delta": 1e-5, "sparsity": 3, "random_state": 0}


@pytest.mark.parametrize(
    "made",
    [SparseERM(rounds=2, classes=[-1.0, 1.0], **OF_THE_ERM), PrivateLasso(1.0, 1e-5, rounds=2),
     LabelIHT(epsilon=1.0, delta=1e-5, sparsity=1, y_bound=1.0),
     LocalIHT(epsilon=1.0, sparsity=1, noise_bound=0.1)],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_pieces_of_the_wrong_kind_are_refused_in_words(made):
    x = np.ones((64, 3))
    wrong = [(x, SIGNS[:, None]), (x.astype(str), SIGNS), (x * 1j, SIGNS), (x, SIGNS, SIGNS), x]
    for piece in wrong:
        with pytest.raises(ParameterError, match=r"a pair of numbers|rows as in|must be numbers"):
            made.fit(Chunks(lambda piece=piece: [piece], x.shape))
    if not isinstance(made, LocalIHT):
        with pytest.raises(ParameterError, match="starts anew"):
            made.fit(Chunks([(x, SIGNS)], x.shape))
    if not isinstance(made, (LocalIHT, SparseERM)):  # these read rows first behind the gate
        assert not hasattr(made, "ledger_")


def test_whoever_cannot_stream_says_so():
    pieces = Chunks(lambda: [(np.ones((8, 2)), SIGNS[:8])], (8, 2))
    for made in (FrankWolfe("squared", np.eye(2), 1.0, 1e-5),
                 GaussianFrankWolfe("squared", L2Ball(1.0), 1.0, 1e-5)):  # fmt: skip
        with pytest.raises(ParameterError, match="in memory"):
            made.fit(pieces, SIGNS[:8])
    made = ThresholdedRegression(1.0, 1e-5, 1, 1.0, 1.0, 1.0)
    with pytest.raises(ParameterError, match="a target for each record"):
        made.fit([(np.ones((4, 2)), np.ones((4, 1)))] * 3)


CENTRAL_FITS = {
    "linear": PrivateLinearRegression(epsilon=1.0, delta=1e-5, random_state=0),
    "statistics": PrivateLinearRegression(
        epsilon=1.0, delta=1e-5, method="statistics", random_state=0
    ),
    "logistic": PrivateLogisticRegression(
        epsilon=1.0, delta=1e-5, classes=[-1, 1], rounds=5, random_state=0
    ),
    "lasso": PrivateLasso(1.0, 1e-5, method="descent", random_state=0),
    "frank-wolfe": PrivateLasso(1.0, 1e-5, rounds=3, random_state=0),
    "erm": SparseERM(
        epsilon=1.0, delta=1e-5, sparsity=2, rounds=5, classes=[-1.0, 1.0], random_state=0
    ),
    "sampled": SparseERM(
        epsilon=1.0, delta=1e-5, sparsity=2, rounds=5, rate=0.5, classes=[-1.0, 1.0], random_state=0
    ),
}


class Pickled(Executor):
    """Calls functions as another process would, which gets everything pickled."""

    def submit(self, function, /, *arguments):
        result = Future()
        sent, data = pickle.loads(pickle.dumps((function, arguments)))
        result.set_result(sent(*data))
        return result


def bits(made):
    """The coefficients and the constant of a fit."""
    return made.coef_.tobytes() + np.asarray(made.intercept_).tobytes()


@pytest.mark.parametrize("form", ["dense", "beyond", "sparse"])
@pytest.mark.parametrize("name", CENTRAL_FITS)
def test_a_fit_has_the_same_bits_whether_chunks_are_held_or_streamed(name, form, monkeypatch):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (240, 4)) * (3 if form == "beyond" else 1)
    y, made = np.where(x[:, 0] > 0, 1.0, -1.0), CENTRAL_FITS[name]
    x = sparse.csr_matrix(x) if form == "sparse" else x
    # a block has some rows of several parts, and the pieces end elsewhere
    monkeypatch.setattr(chunks, "PART_ENTRIES", 4 * 37)
    monkeypatch.setattr(blocks, "DENSE_BLOCK_ENTRIES", 4 * 90)
    monkeypatch.setattr(blocks, "SPARSE_BLOCK_ROWS", 90)
    pieces = Chunks(lambda: iter(cut(x, y, [100, 69, 71])), x.shape)
    # on a sparse matrix Frank-Wolfe keeps scores, and adds in another order
    found = [bits(made.fit(x, y))] if form != "sparse" or name != "frank-wolfe" else []
    for held_bytes in (1 << 20, 0):
        monkeypatch.setattr(chunks, "HELD_BYTES", held_bytes)
        found.append(bits(made.fit(pieces)))
    # in another process a loss is no longer the object of the table
    found.append(bits(made.fit(pieces, executor=Pickled())))
    assert len(set(found)) == 1


IN_MEMORY = {
    name: clone(made).set_params(**({"rounds": 3} if name in {"linear", "logistic"} else {}))
    for name, made in CENTRAL_FITS.items()
}
IN_MEMORY |= {
    f"{name}, private bounds": clone(made).set_params(bounds="private", epsilon=4.0)
    for name, made in IN_MEMORY.items()
    if hasattr(made, "bounds")
}
# Frank-Wolfe holds single numbers as floats, and a sample of rows is a copy.
COPIES = {"frank-wolfe", "frank-wolfe, private bounds", "sampled"}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_single_numbers_and_scales_by_blocks_change_no_bit(name, monkeypatch):
    rng = np.random.default_rng(6)
    x = rng.uniform(-1.2, 1.2, (2000, 4)).astype(np.float32)
    y, made, found = np.where(x[:, 0] > 0, 1.0, -1.0), IN_MEMORY[name], set()
    for held_bytes in (1 << 20, 0):  # scaled at once, or block by block
        monkeypatch.setattr(column_bounds, "HELD_BYTES", held_bytes)
        found |= {made.fit(rows, y).coef_.tobytes() for rows in (x, x.astype(float))}
    assert len(found) == 1


@pytest.mark.parametrize("form", ["C", "F", "single", "frame"])
@pytest.mark.parametrize("name", [name for name in IN_MEMORY if name not in COPIES])
def test_a_fit_makes_no_copy_of_its_rows(name, form, monkeypatch):
    monkeypatch.setattr(blocks, "DENSE_BLOCK_ENTRIES", 1 << 13)
    monkeypatch.setattr(column_bounds, "HELD_BYTES", 0)
    x = np.random.default_rng(7).uniform(-1, 1, (20_000, 20))
    y, made = np.where(x[:, 0] > 0, 1.0, -1.0), clone(IN_MEMORY[name])
    if "lasso" in name:
        made.set_params(epsilon=0.1)  # 60 rounds
    x = np.asarray(x, np.float32 if form == "single" else float, "F" if form == "F" else "C")
    rows = pd.DataFrame(x, copy=False) if form == "frame" else x
    made.fit(x[:500], y[:500])  # what is imported and cached takes memory once
    tracemalloc.start()
    made.fit(rows, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # before 2.1 numpy cannot lend an array for reading, so there is one copy
    copies = NumpyVersion(np.__version__) < "2.1.0"
    assert peak < (copies + 0.9) * max(x.nbytes, copies * 8 * x.size)


def test_lengths_of_other_rows_are_not_taken_for_those_of_these():
    rng = np.random.default_rng(8)
    rows, targets, vector = rng.uniform(-1, 1, (50, 3)), np.ones(50), rng.uniform(0.5, 1, 3)
    features = FeatureMap(1.0, 0.0, np.full(3, 0.1), np.diag([1.0, 4.0, 9.0]))
    gradient = BlockClippedGradient(
        ScoreLoss(HALF_SQUARED).slopes, 0.1, features, 1.0, np.ones((3, 1))
    )
    known = KnownLengths.of(features, vector, rows)
    assert known.are_of(rows)
    assert np.array_equal(
        gradient.with_lengths(((rows, targets), known)), gradient((rows, targets))
    )
    short = known._replace(lengths=known.lengths / 100)  # which would clip too little
    for other in (rows[::-1], np.vstack([rows[1:], 2 * rows[:1]])):
        found = gradient.with_lengths(((other, targets), short))
        assert np.array_equal(found, gradient((other, targets)))
