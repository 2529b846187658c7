"""What a gate releases: the array it checked, in the process that opened it."""

import math
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

from accountant import (
    Budget,
    Filter,
    Ledger,
    Odometer,
    OffPlan,
    Parallel,
    ParameterError,
    PoissonSampled,
    PrivateValueError,
    PureLoss,
    Sequential,
    randomness,
)
from accountant.ledger.private_copies import PrivateCopies
from mechanisms import Gaussian, HemisphereL2, Laplace, PureFromApproximate, RandomizedResponse


def fork_and_ask(ledger, made, results):
    try:
        results.put(float(ledger.release(made, np.sum)))
    except OffPlan as error:
        results.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_ledger_spends_nothing():
    made = Laplace(1.0)
    ledger, context = Ledger(np.zeros(3), 10 * made), multiprocessing.get_context("fork")
    results = context.Queue()
    children = [
        context.Process(target=fork_and_ask, args=(ledger, made, results)) for _ in range(2)
    ]
    for child in children:
        child.start()
    answers = [results.get(timeout=30) for _ in children]
    for child in children:
        child.join()
    assert all("belongs to the process that forked" in str(answer) for answer in answers)
    assert math.isfinite(ledger.release(made, np.sum))


def test_the_gate_checks_the_very_array_that_is_released():
    class Shapeless:
        shape = ()

        def __array__(self, dtype=None, copy=None):
            return np.zeros(1000, dtype=int)

    made = RandomizedResponse(3, 0.5)
    with pytest.raises(PrivateValueError, match="a single number"):
        Ledger(np.zeros(4), made, rng=0).release(made, lambda data: Shapeless())
    with pytest.raises(PrivateValueError, match="not ragged"):
        Ledger(np.zeros(4), Laplace(1.0), rng=0).release(Laplace(1.0), lambda data: [[1.0], [1, 2]])


def test_a_user_in_two_blocks_is_refused():
    ledger = Ledger(np.ones((60, 2)), Parallel([HemisphereL2(2, 1.0, 0.7)] * 2), rng=3)
    with pytest.raises(OffPlan):
        list(ledger.release_blocks(ledger.plan.parts[0], lambda rows: rows / 2,
                                   [slice(0, 30), slice(29, 60)]))  # fmt: skip


NOTEBOOK = '''
@declare
class Doubled(Mechanism):
    """Twice the noise."""

    releases = reference = "x"
    scale: float = param(POSITIVE, "noise", typical=(1.0,))
    loss = property(lambda self: PureLoss(self.scale))
    release = lambda self, value, rng=None, size=None: value
    log_density = worst_pair = None
    values = property(lambda self: Reals(1.0))
    support = None
'''


def test_a_class_that_is_defined_anew_takes_the_place_of_the_earlier_one():
    code = """
import numpy as np
from accountant import Ledger, ParameterError, PureLoss
from accountant.domains import POSITIVE
from mechanisms import Mechanism, declare, param, registry
from mechanisms.base import Reals
exec(NOTEBOOK); first = Doubled(1.0)
exec(NOTEBOOK); second = Doubled(1.0)
assert [cls.__name__ for cls in registry()].count("Doubled") == 1
Ledger(np.ones(3), second).release(second, np.sum)
try:
    Ledger(np.ones(3), first).release(first, np.sum)
except ParameterError as error:
    print(error)
"""
    code = f"NOTEBOOK = {NOTEBOOK!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs a gate made with undeclared=True" in done.stdout


def test_threads_get_the_mechanism_that_they_ask_for():
    copies, wrong = PrivateCopies(False), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def ask(scale):
        for _ in range(3000):
            made = copies.of(Laplace(scale))
            if made.scale != scale:
                wrong.append(made)

    threads = [threading.Thread(target=ask, args=(scale,)) for scale in (1.0, 2.0, 3.0, 4.0)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    sys.setswitchinterval(interval)
    assert wrong == []
    assert all(copies.of(Laplace(float(k))).scale == k for k in range(1, 5000))


def test_a_mechanism_in_a_plan_is_the_copy_that_is_handed_out_alone():
    copies = PrivateCopies(False)
    own_copy = copies.of(Laplace(2.0))
    plan = copies.of_plan(Sequential([3 * Laplace(2.0), Laplace(4.0)]))
    assert plan.parts[0].part is own_copy
    assert copies.of(Laplace(4.0)) is plan.parts[1]


def forged(mechanism):
    """A mechanism that remembers a loss that is not its own."""
    object.__setattr__(mechanism, "_remembered_loss", PureLoss(1e-6))
    return mechanism


def test_a_remembered_loss_reaches_no_gate():
    inner = Gaussian(2.0, arithmetic="exact")
    for mechanism, right in (
        (forged(Laplace(10.0)), Laplace(10.0)),
        (
            forged(PureFromApproximate(forged(inner), 0.2, 12)),
            PureFromApproximate(Gaussian(2.0, arithmetic="exact"), 0.2, 12),
        ),
    ):
        assert mechanism.loss == PureLoss(1e-6)
        gate = Filter(np.zeros(3), Budget(5.0), rng=0)
        gate.release(mechanism, np.sum)
        assert gate.spent == pytest.approx(right.loss.max_loss, rel=1e-12)


FINE = Laplace(1e6)  # two draws are equal with a chance below 1e-6


def gates(rng):
    rows = np.arange(200.0)
    yield Ledger(rows, Sequential([FINE, FINE]), rng)
    yield Filter(rows, Budget(1.0), rng=rng)
    yield Odometer(rows, 1e-6, rng=rng)


def test_a_copy_of_the_generator_from_before_draws_other_noise():
    for gate in gates(None):  # as a virtual machine that is restored twice, or a fork
        copied_state = gate._noise.bit_generator.state
        first = gate.release(FINE, np.sum)
        gate._noise.bit_generator.state = copied_state
        assert gate.release(FINE, np.sum) != first


def test_a_copy_of_the_generator_from_before_draws_another_sample():
    sampled, seen = PoissonSampled(FINE, 0.5), []
    gate = Filter(np.arange(200.0), Budget(1.0, 1e-6))
    copied_state = gate._noise.bit_generator.state
    for _ in range(2):
        gate._noise.bit_generator.state = copied_state
        gate.release(sampled, lambda rows: seen.append(rows.tolist()) or rows.sum())
    assert seen[0] != seen[1]


def test_seeded_noise_is_that_of_the_seed_alone():
    for seeded, again in zip(gates(3), gates(3), strict=True):
        noise = np.random.default_rng(np.random.default_rng(3).bit_generator.seed_seq.spawn(2)[0])
        for _ in range(2):
            released = seeded.release(FINE, np.sum)
            assert released == again.release(FINE, np.sum)
            assert released == FINE.release(np.arange(200.0).sum(), noise)


@pytest.mark.parametrize("key_place", [slice(64, 96), slice(0, 32)])
def test_a_renewed_key_is_the_one_of_the_system(monkeypatch, key_place):
    monkeypatch.setattr(randomness, "KEY_PLACE", key_place)
    noise = randomness.keyed_generator(5)
    key = randomness.RenewedKey(noise)
    assert key._is_in_place is (key_place.start == 64)
    for fresh in (bytes(range(32)), bytes(range(32, 64))):
        noise.random(11)
        monkeypatch.setattr(os, "urandom", lambda size, fresh=fresh: fresh[:size])
        key.renew()
        expected = randomness.keyed_generator(int.from_bytes(fresh, "little"))
        assert noise.bytes(1000) == expected.bytes(1000)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (4, 2)])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_sparse_matrix_of_any_shape_is_data(shape, kind):
    matrix = sparse.eye_array(*shape, format=kind)
    ledger = Ledger(matrix, 2 * Laplace(1e-9), rng=1)
    assert ledger.shape == shape
    assert ledger.release(Laplace(1e-9), lambda data: data.sum()) == pytest.approx(min(shape))


@pytest.mark.parametrize(
    "matrix",
    [
        sparse.csr_array((0, 3)), sparse.csr_array((3, 0)), sparse.csr_array([[math.nan, 1.0]]),
        sparse.csr_array([[math.inf], [1.0]]), sparse.csr_array([[1j, 0.0]]),
    ],
    ids=repr,
)  # fmt: skip
def test_an_empty_or_wrong_sparse_matrix_is_no_data(matrix):
    with pytest.raises(ParameterError, match=r"data must be"):
        Ledger(matrix, 2 * Laplace(1.0), rng=1)
