"""Laws: replay finds every request, refused ones too, that the data decided."""

import contextlib
import dataclasses
import math

import numpy as np
import pytest

from accountant import OffPlan, Parallel, ParameterError, PoissonSampled, Repeat
from audits import privacy_losses, replay
from mechanisms import Gaussian, Laplace, RandomizedResponse

NOISE = Laplace(1.0)
COIN = RandomizedResponse(2, 0.75)
DATA = np.linspace(0, 1, 20)
OTHER = np.append(DATA[:-1], 8.0)
ANSWERS = np.arange(20) % 2
TURNED = np.append(ANSWERS[:-1], 1 - ANSWERS[-1])
GAUSSIAN = Gaussian(1.0)
RATE = 0.3


class Sum:
    """An honest sum; subclasses ask for more, and hide that it was refused."""

    refused = staticmethod(lambda ledger: None)

    def plan(self, shape):
        return Repeat(NOISE, 1)

    def run(self, ledger):
        seen = []
        found = float(ledger.release(NOISE, lambda data: seen.append(data[-1]) or data.sum()))
        if seen[0] > 1.0:
            with contextlib.suppress(OffPlan, ParameterError):
                self.refused(ledger)
        return found


REFUSED = {
    "a release past the plan": lambda ledger: ledger.release(NOISE, np.sum),
    "no mechanism": lambda ledger: ledger.release("noise", np.sum),
    "users that are none": lambda ledger: ledger.release_each(NOISE, np.sum, [-1]),
    "users of no part": lambda ledger: ledger.release_each(NOISE, lambda rows: rows, [0]),
    "a sample of each user": lambda ledger: ledger.release_each(
        PoissonSampled(GAUSSIAN, RATE), lambda rows: rows
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_that_the_data_decide_is_off_plan(name):
    made = Sum()
    made.refused = REFUSED[name]
    found = replay(made, DATA, OTHER, rng=0)
    assert "refused on other data alone" in found.witness
    assert (found.on_plan, found.sound) == (False, False)
    found = replay(made, OTHER, DATA, rng=0)
    assert "refused on the recorded data alone" in found.witness
    assert (found.on_plan, found.sound) == (False, False)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_on_all_data_is_on_plan(name):
    made = Sum()
    made.refused = REFUSED[name]
    found = replay(made, 2 + DATA, 2 + np.append(DATA[:-1], 0.0), rng=0)
    assert found.sound, found.witness


OTHERWISE_REFUSED = {
    "another mechanism": lambda ledger, large: ledger.release(Laplace(2.0 + large), np.sum),
    "another class": lambda ledger, large: ledger.release(2.0 if large else "noise", np.sum),
    "other users": lambda ledger, large: ledger.release_each(
        NOISE, lambda rows: rows, [int(large)]
    ),
    "users in place of all": lambda ledger, large: (
        ledger.release_each(NOISE, lambda rows: rows) if large else ledger.release(NOISE, np.sum)
    ),
    "another sample": lambda ledger, large: ledger.release_each(
        PoissonSampled(GAUSSIAN, 0.5 if large else 0.3), lambda rows: rows
    ),
    "another error": lambda ledger, large: ledger.release_each(
        NOISE, lambda rows: rows, [0] if large else [-1]
    ),
}


@pytest.mark.parametrize("name", OTHERWISE_REFUSED)
def test_what_was_refused_is_compared_too(name):
    class Chooses(Sum):
        def run(self, ledger):
            seen = []
            found = float(ledger.release(NOISE, lambda data: seen.append(data[-1]) or data.sum()))
            with contextlib.suppress(OffPlan, ParameterError):
                OTHERWISE_REFUSED[name](ledger, seen[0] > 1.0)
            return found

    assert not replay(Chooses(), DATA, OTHER, rng=0).on_plan
    assert replay(Chooses(), DATA, np.append(DATA[:-1], 0.0), rng=0).on_plan


class Local:
    """Lets ``copies`` users answer with the last one's answer, ``size`` of them at a time."""

    def __init__(self, copies, size):
        self.copies, self.size = copies, size

    def plan(self, shape):
        return Parallel([COIN] * (shape[0] // self.size))

    def run(self, ledger):
        last = []

        def query(answers):
            last.append(answers[-1])
            found = answers.copy()
            found[: self.copies - 1] = last[0]
            return found

        users, size = ledger.shape[0], self.size
        starts = range(users - size, -1, -size)
        return [ledger.release_each(COIN, query, slice(i, i + size)).sum() for i in starts]


@pytest.mark.parametrize(("copies", "size"), [(2, 20), (3, 20), (2, 1), (2, 2)])
def test_two_users_whose_values_change_are_too_many(copies, size):
    assert replay(Local(1, size), ANSWERS, TURNED, rng=0).sound
    found = replay(Local(copies, size), ANSWERS, TURNED, rng=0)
    assert "users changed with one user's record" in found.witness
    assert (found.on_plan, found.sound) == (False, False)


class Sampled:
    """Sums of secret samples; ``noise`` is a share of the noise that its plan needs."""

    def __init__(self, noise=1.0):
        part = dataclasses.replace(GAUSSIAN, scale=noise)
        self.part = PoissonSampled(part, RATE)

    def plan(self, shape):
        return Repeat(self.part, 5)

    def run(self, ledger):
        return [float(ledger.release(self.part, np.sum)) for _ in range(5)]


ADDED, REMOVED = np.append(DATA[:-1], 1.0), np.append(DATA[:-1], 0.0)


@pytest.mark.parametrize("way", ["added", "removed"])
def test_the_loss_of_a_sampled_release_is_that_of_its_mixture(way):
    data, neighbour = (ADDED, REMOVED) if way == "removed" else (REMOVED, ADDED)
    found = replay(Sampled(), data, neighbour, rng=1)
    assert found.sound
    assert math.isfinite(found.loss)
    assert found.unchecked == ()
    losses = privacy_losses(Sampled(), data, neighbour, 500, rng=2)
    ratios = np.exp(-losses)  # Q / P under P, whose mean is 1
    # chi-square of N(0, 1) and its mixture with N(1, 1), for five sums; less the other way round
    variance = (1 + RATE**2 * math.expm1(1)) ** 5 - 1
    # 5.3 standard errors are passed once in 10^7
    assert abs(ratios.mean() - 1) < 5.3 * math.sqrt(variance / losses.size)
    if way == "added":
        assert ratios.var() == pytest.approx(variance, rel=0.5)


def test_too_little_noise_under_a_sample_is_seen():
    class Less(Sampled):
        def plan(self, shape):
            return Sampled(1.0).plan(shape)

    found = replay(Less(), 40 * ADDED, 40 * REMOVED, rng=1)
    assert found.loss > found.largest_loss
    assert not found.sound


def test_a_record_that_is_replaced_in_a_sample_is_not_checked():
    found = replay(Sampled(), ADDED, np.append(DATA[:-1], -1.0), rng=1)
    assert math.isnan(found.loss)
    assert "samples were secret" in found.unchecked[0]
