"""Votes of machines that fail, are late, vote twice or nonsense; on threads, processes and Dask."""

import contextlib
import os
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from accountant import ParameterError
from algorithms.voting.machine_votes import MachineVote
from algorithms.voting.sign_vote import SignVote
from algorithms.voting.vote_collection import (
    FAILED,
    INVALID,
    VoteCollector,
    collect_votes,
    encode_own_vote,
    pack_vote,
    vote_length,
)

RNG = np.random.default_rng(4)
MEANS = np.array([1.0, -1.0] + [0.0] * 9)
MACHINES = [MEANS + RNG.normal(size=(50, 11)) for _ in range(40)]


def vote(**settings):
    return SignVote(5.0, 1e-3, 3, **{"random_state": 0, **settings})


# Messages


@pytest.mark.parametrize("features", [1, 7, 8, 9, 100, 1001])
def test_a_vote_travels_in_two_bits_a_feature(features):
    votes = RNG.integers(-1, 2, (3, features))
    box = VoteCollector(3)
    for machine, one in enumerate(votes):
        message = pack_vote(one)
        assert len(message) == 5 + 2 * ((features + 7) // 8)
        assert vote_length(message) == features
        box.receive(machine, message)
    found, report = box.read_votes()
    assert np.array_equal(found, votes)
    assert found.dtype == np.int8
    assert report.fates == ("counted",) * 3
    assert report.bytes == (5 + 2 * ((features + 7) // 8),) * 3


NO_VOTES = [
    [0, 2, 1], [0, -2, 1], [0, np.nan, 1], [0, np.inf, 1], [0.5, 0, 1], [], 1, None, "1 0 1",
    [True, False, True], [1 + 0j, 0, 1], [[1, 0], [1]], [[[1, 0, 1]]], [[0, 1, 2], [0, 1, 1]],
    np.array([1, 0, 1], dtype=object), np.array([255, 0, 1], dtype=np.uint8),
]  # fmt: skip


@pytest.mark.parametrize("nonsense", NO_VOTES, ids=str)
def test_what_is_no_vote_counts_as_null(nonsense):
    box = VoteCollector(3)
    box.receive(0, pack_vote([1, -1, 0]))
    box.receive(1, encode_own_vote(lambda data: data, nonsense))
    box.receive(2, pack_vote([1, 1, 0]))
    found, report = box.read_votes()
    assert found.tolist() == [[1, -1, 0], [0, 0, 0], [1, 1, 0]]
    assert report.fates == ("counted", "invalid", "counted")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x00",
        bytes([FAILED + 5]),
        pack_vote([1, 0]),
        pack_vote([1, 0, 1, 1]),
        pack_vote([1] * 3)[:-1],
        pack_vote([1] * 3) + b"\x00",
        pack_vote([1] * 3)[:5] + b"\xff\xff",
        np.ones(3),
        None,
        "vote",
        7,
        bytearray(pack_vote([1] * 3)),
        bytes([INVALID]) + pack_vote([1] * 3)[1:],
    ],
    ids=str,
)
def test_the_server_trusts_no_message(message):
    box = VoteCollector(3)
    box.receive(0, pack_vote([1, -1, 0]))
    box.receive(1, message)
    box.receive(2, pack_vote([1, 1, 0]))
    found, report = box.read_votes(3)
    assert found.tolist() == [[1, -1, 0], [0, 0, 0], [1, 1, 0]]
    assert report.fates == ("counted", "invalid", "counted")


def test_whoever_votes_twice_is_counted_once():
    box = VoteCollector(4)
    for machine, one in (
        (0, [1, 1]),
        (1, [1, 0]),
        (0, [-1, -1]),
        (0, [-1, 1]),
        (2, [2, 2]),
        (2, [1, 1]),
        (3, [[0, 1], [1, 1]]),
    ):
        box.receive(machine, pack_vote(one))
    found, report = box.read_votes()
    assert found.tolist() == [[1, 1], [1, 0], [0, 0], [0, 1]]
    assert report.fates == ("twice", "counted", "invalid", "twice")
    assert report.bytes == (21, 7, 8, 7)
    assert str(report) == "4 machines: 1 counted, 2 twice, 1 invalid; 43 bytes"
    for stranger in (-1, 4, True, "0"):
        with pytest.raises(ParameterError, match="machine must be"):
            box.receive(stranger, pack_vote([1, 1]))


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_an_error_on_a_machine_does_not_travel(kind):
    def fails(data):
        raise kind(f"secret {data}")

    assert encode_own_vote(fails, 3.25) == bytes([FAILED])
    with pytest.raises(ParameterError) as caught:
        vote(estimator=fails).fit(MACHINES)
    assert str(caught.value).startswith("SignVote: machines must be such that more than half")
    assert "40 failed; 40 bytes" in str(caught.value)
    assert caught.value.__context__ is None


# Enough machines


@pytest.mark.parametrize(("lost", "enough"), [(0, True), (19, True), (20, False), (40, False)])
def test_more_than_half_must_vote(lost, enough):
    machines = [None] * lost + MACHINES[lost:]
    if not enough:
        with pytest.raises(ParameterError, match="more than half of them vote"):
            vote().fit(machines)
        return
    fit = vote().fit(machines)
    assert fit.report_.answered == 40 - lost
    # the machines that were invited are what the votes are weighed against
    assert fit.votes_.shape == (40, 11)
    assert not fit.votes_[:lost].any()
    assert fit.plan_ == vote().plan((40, 11))


def test_lengths_are_the_majority_s_where_data_are_elsewhere():
    shapes = [(9, 4)] * 3 + [(9, 5)] * 4
    fit = SignVote(1.0, 1e-3, 1).fit([lambda s=s: np.ones(s) for s in shapes])
    assert fit.signs_.shape == (5,)
    assert fit.report_.fates == ("invalid",) * 3 + ("counted",) * 4
    with pytest.raises(ParameterError, match="machines must be"):
        SignVote(1.0, 1e-3, 1).fit([lambda s=s: np.ones(s) for s in shapes[:6]])
    with pytest.raises(ParameterError, match=r"of \[4, 5\] features"):
        SignVote(1.0, 1e-3, 1).fit([np.ones(s) for s in shapes])
    # more are to be selected than there turn out to be
    with pytest.raises(ParameterError, match="k must be a whole number from 1 to 5"):
        SignVote(1.0, 1e-3, 6).fit([lambda: np.ones((9, 5))] * 3)


def test_late_machines_are_not_waited_for():
    release = threading.Event()

    def load(machine):
        if machine % 8 == 3:
            assert release.wait(120)  # a vote that waits for it hangs so long
        return MACHINES[machine]

    handles = [lambda machine=machine: load(machine) for machine in range(40)]
    with ThreadPoolExecutor(40) as pool:
        fit = vote(timeout=1.0, executor=pool).fit(handles)
        release.set()
    assert [fate == "late" for fate in fit.report_.fates] == [m % 8 == 3 for m in range(40)]
    assert fit.report_.bytes[3] == 0
    assert fit.signs_.tolist() == np.sign(MEANS).tolist()


# Executors


def fates_and_signs(executor, machines=MACHINES, **settings):
    fit = vote(executor=executor, **settings).fit(machines)
    return fit.report_, fit.signs_.tolist(), [entry.output for entry in fit.transcript_]


def test_results_do_not_depend_on_the_executor():
    expected = fates_and_signs(None)
    assert expected[1] == np.sign(MEANS).tolist()
    with ThreadPoolExecutor(3) as pool:
        assert fates_and_signs(pool) == expected
    with ProcessPoolExecutor(2) as pool:
        assert fates_and_signs(pool) == expected


class Odd(ThreadPoolExecutor):
    """Loses every fifth machine's answer, and garbles the next."""

    count = -1

    def submit(self, function, local, handle):
        done, self.count = Future(), self.count + 1
        if self.count % 5 == 0:
            done.set_exception(OSError("the worker died"))
        else:
            done.set_result(b"?" if self.count % 5 == 1 else function(local, handle))
        return done


def test_what_gets_lost_on_the_way_is_null():
    local = MachineVote("mean", None, 40, 3, 5.0, 1e-3)
    votes, report = collect_votes(local, MACHINES, Odd()).read_votes(11)
    assert report.fates == ("failed", "invalid", "counted", "counted", "counted") * 8
    assert report.bytes == (0, 1, 9, 9, 9) * 8
    assert not votes[::5].any()
    assert not votes[1::5].any()
    assert (votes[2::5, 0] == 1).all()


@contextlib.contextmanager
def client_of_two(*, processes):
    """Two workers that are sent all bytes, in processes of their own or in threads of this one."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            processes=processes,
            protocol="tcp://",
            threads_per_worker=1,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with client_of_two(processes=False) as client:
        yield client


def test_it_runs_on_a_cluster(client):
    expected = fates_and_signs(None)
    with client.get_executor() as executor:
        # data that are sent, data that lie on the workers, and data that are made there
        assert fates_and_signs(executor) == expected
        assert fates_and_signs(executor, client.scatter(MACHINES)) == expected

        def load(seed):
            return MEANS + np.random.default_rng(seed).normal(size=(50, 11))

        made = [lambda seed=seed: load(seed) for seed in range(20)]
        report, signs, _ = fates_and_signs(executor, made)
        assert signs == np.sign(MEANS).tolist()
        assert report.bytes == (5 + 2 * 2,) * 20


@pytest.mark.slow
def test_processes_of_a_cluster_vote():
    def pid_of(data):
        # bits of the process that voted: it was none of ours
        return [int(bit) for bit in f"{os.getpid():032b}"]

    with client_of_two(processes=True) as client, client.get_executor() as executor:
        made = [lambda seed=seed: np.full((50, 32), float(seed)) for seed in range(20)]
        fit = vote(executor=executor, estimator=pid_of).fit(made)
    pids = {int("".join(map(str, row)), 2) for row in fit.votes_}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_faults_on_a_cluster_are_null_votes(client):
    def shaky(data):
        which = int(data[0])
        if which == 1:
            raise RuntimeError("no")
        if which == 2:
            return [np.nan] * 5
        if which == 3:
            return [2, 0, 0, 0, 0]
        if which == 4:
            return [[1] * 5, [-1] * 5]
        if which == 5:
            time.sleep(6)
        return [1, -1, 0, 0, 0]

    handles = [np.array([machine]) for machine in [0] * 8 + [1, 2, 3, 4, 0, 5]]
    with client.get_executor() as executor:
        fit = vote(executor=executor, estimator=shaky, timeout=3.0).fit(handles)
    fates = ["counted"] * 8 + ["failed", "invalid", "invalid", "twice", "counted", "late"]
    assert list(fit.report_.fates) == fates
    assert fit.signs_.tolist() == [1, -1, 0, 0, 0]
    assert fit.votes_[[8, 9, 10, 13]].tolist() == [[0] * 5] * 4
