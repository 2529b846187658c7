"""Replay: leaks to the last bit, plans that depend on data, and exact privacy losses."""

import copy
import itertools
import math
import re
from collections import deque
from datetime import date
from decimal import Decimal
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from accountant import OffPlan, Parallel, ParameterError, PoissonSampled, PureLoss, Repeat, Tight
from algorithms import PrivateLinearRegression, PrivateLogisticRegression, PrivateMean
from audits import privacy_losses, replay
from audits.algorithm_runs.fits import plain, published
from audits.algorithm_runs.loss_profile import audit_algorithm
from audits.algorithm_runs.recording import RecordingLedger, same_users
from audits.algorithm_runs.replay_gate import OffTranscript, ReplayGate
from audits.algorithm_runs.replaying import difference
from audits.zoo.broken.algorithms import Gossip, _NoisySum
from audits.zoo.catalogue import ZOO
from mechanisms import Gaussian, Laplace, NoisyMax, RandomizedResponse

A = Laplace(1.0)
DATA = np.linspace(0, 1, 20)
OTHER = np.append(DATA[:-1], 0.0)
COIN = RandomizedResponse(2, 0.75)


class Local:
    """An honest local algorithm: two groups, the second is asked what the first could not tell."""

    def plan(self, shape):
        return Parallel([COIN, COIN + COIN])

    def run(self, ledger):
        half = ledger.shape[0] // 2
        order = ledger.coins.permutation(ledger.shape[0])
        first = ledger.release_each(COIN, lambda rows: rows, np.sort(order[:half]))
        second = [
            ledger.release_each(COIN, lambda rows: rows, np.sort(order[half:])) for _ in range(2)
        ]
        return {"first": first.mean(), "second": [part.mean() for part in second], "n": half}


class Adaptive(_NoisySum):
    """Chooses by public answers how to ask on: honest."""

    def plan(self, shape):
        return Repeat(Gaussian(2.0), 3)

    def run(self, ledger):
        mechanism, total = ledger.plan.part, 0.0
        for _ in range(3):
            sign = 1 if total < 5 else -1
            total += float(ledger.release(mechanism, lambda data, s=sign: s * data.sum()))
        return np.array([total])


def test_honest_algorithms_pass():
    answers = (DATA > 0.4).astype(int)
    flipped = answers.copy()
    flipped[3] = 1 - flipped[3]
    cases = [(_NoisySum(), DATA, OTHER), (Adaptive(), DATA, OTHER), (Local(), answers, flipped)]
    for algorithm, data, neighbour in cases:
        found = replay(algorithm, data, neighbour, rng=1)
        assert found.leak_free, found.witness
        assert found.on_plan
        assert found.deterministic
        assert np.isfinite(found.loss)


@pytest.mark.parametrize(
    "specimen", [s for s in ZOO if s.caught_by != "guess test"], ids=lambda s: s.name
)
def test_every_broken_algorithm_is_caught_by_what_it_names(specimen):
    found = audit_algorithm(
        specimen.implementation, *specimen.pair, specimen.claim, 100, np.random.default_rng(2)
    )
    assert found.refutation(1 - 1e-9).startswith(specimen.caught_by)
    assert found.replayed.data_independent is (specimen.caught_by == "privacy losses")
    assert not found.replayed.sound  # a loss of 2 under a claim of 1 is seen in a single run


def test_the_loss_is_the_log_ratio_of_the_answer():
    class KeepsAnswer(_NoisySum):
        def run(self, ledger):
            self.answer = super().run(ledger)
            return self.answer

    algorithm = KeepsAnswer()
    losses = privacy_losses(algorithm, DATA, OTHER, 1, rng=3)
    expected = abs(algorithm.answer - OTHER.sum()) - abs(algorithm.answer - DATA.sum())
    assert losses[0] == pytest.approx(expected, abs=1e-12)


def test_losses_have_the_law_of_the_mechanism():
    # the loss of one Gaussian with shift mu is N(mu^2/2, mu^2): here mu = 3 * .5 / sqrt(3) ...
    losses = privacy_losses(Adaptive(), DATA, OTHER, 4000, rng=5)
    mu = np.sqrt(3) / 2.0
    assert losses.mean() == pytest.approx(mu**2 / 2, abs=6 * mu / np.sqrt(4000))
    assert losses.std() == pytest.approx(mu, rel=6 / np.sqrt(2 * 4000))


def test_one_users_change_costs_one_users_loss():
    answers = (DATA > 0.4).astype(int)
    flipped = answers.copy()
    flipped[3] = 1 - flipped[3]
    losses = privacy_losses(Local(), answers, flipped, 200, rng=1)
    one = np.log(3.0)
    values = {-2 * one, -one, 0.0, one, 2 * one}
    assert all(min(abs(loss - v) for v in values) < 1e-9 for loss in losses)
    assert len(np.unique(losses.round(6))) > 2


def test_losses_of_an_algorithm_whose_plan_depends_on_data_are_refused():
    with pytest.raises(OffTranscript, match="users changed with one"):
        privacy_losses(Gossip(), np.arange(20) % 2, 1 - np.arange(20) % 2, 3, rng=1)


def replayed(plan, ask, data, other):
    """The gate of a replay on other data, after what was asked on the recorded ones."""
    recorder = RecordingLedger(data, plan, 3, None)
    ask(recorder)
    gate = ReplayGate(recorder, other)
    ask(gate)
    return gate


def test_values_of_two_users_may_not_change_in_two_releases():
    """A query may keep a record for the next release, where another user tells it."""

    def ask(gate):
        for column in (0, 1):
            gate.release_each(COIN, lambda rows, column=column: rows[:, column])

    data = np.zeros((6, 2), dtype=int)
    first, both = data.copy(), data.copy()
    first[1], both[1, 0], both[2, 1] = 1, 1, 1
    assert replayed(COIN + COIN, ask, data, first).loss != 0
    with pytest.raises(OffTranscript, match="2 users changed with one"):
        replayed(COIN + COIN, ask, data, both)


@pytest.mark.parametrize(("changed", "is_known"), [((), True), ((3,), True), ((3, 5), False)])
def test_the_loss_of_a_sample_is_known_where_one_record_changed(changed, is_known):
    noise = PoissonSampled(Laplace(2.0), 0.5)
    other = np.ones(40)
    other[list(changed)] = 0.0
    found = replayed(noise, lambda gate: gate.release(noise, np.sum), np.ones(40), other)
    assert math.isfinite(found.loss) == is_known
    assert (found.loss == 0) == (len(changed) == 0)


def test_own_randomness_is_told_from_a_leak():
    class Dice(_NoisySum):
        def run(self, ledger):
            return super().run(ledger) + float(np.random.default_rng().random())

    found = replay(Dice(), DATA, OTHER, rng=1)
    assert not found.deterministic
    assert "even on the same data" in found.witness


class Other(_NoisySum):
    """Asks for another mechanism when the data are large."""

    def plan(self, shape):
        return A.loss + Laplace(2.0).loss

    def run(self, ledger):
        seen = []
        first = ledger.release(A, lambda data: seen.append(data[-1]) or data.sum())
        return float(first) + float(
            ledger.release(
                Laplace(2.0 if seen[0] > 0.5 else 4.0, 1.0 if seen[0] > 0.5 else 2.0), np.sum
            )
        )


class Routed(Local):
    """Routes users by their data."""

    def plan(self, shape):
        return Parallel([COIN, COIN])

    def run(self, ledger):
        half = 10 + int(ledger._data[3])
        first = ledger.release_each(COIN, lambda rows: rows, slice(0, half))
        return float(first.mean())


@pytest.mark.parametrize(
    ("algorithm", "words"), [(Other(), "recorded was"), (Routed(), "other users")]
)
def test_choices_that_depend_on_data_are_off_plan(algorithm, words):
    answers = np.ones(20, dtype=int)
    flipped = answers.copy()
    flipped[3] = 0
    data = (DATA, OTHER) if isinstance(algorithm, Other) else (answers, flipped)
    found = replay(algorithm, *data, rng=1)
    assert not found.on_plan
    assert words in found.witness


def test_requests_name_the_same_users_only_if_all_of_them_are_the_same():
    requests = [None, slice(0, 3, 1), slice(0, 3, 2), slice(1, 3, 1)]
    requests += [np.array(who, dtype=np.intp) for who in ([], [0], [0, 1, 2], [0, 1, 3], [2, 1, 0])]
    for first, second in itertools.product(range(len(requests)), repeat=2):
        same = same_users(requests[first], copy.deepcopy(requests[second]))
        assert same is (first == second)


def _asks(query, mechanism=A, shape=None):
    class Asks(_NoisySum):
        def plan(self, shape):
            return Repeat(mechanism, 1)

        def run(self, ledger):
            return np.sum(ledger.release(mechanism, query, shape=shape))

    return Asks()


def _hides(query):
    class Hides(_NoisySum):
        def run(self, ledger):
            try:
                return float(ledger.release(A, query))
            except ZeroDivisionError:
                return 0.0

    return Hides()


LARGE = DATA.copy()
LARGE[-1] = 8.0
UNEQUAL = {
    "a vector as long as the data say": _asks(
        lambda d: d[d > 7.5], shape=np.count_nonzero(DATA > 7.5)
    ),
    "a value that is none on one side": _asks(lambda d: np.nan if d[-1] > 7.5 else 0.0),
    "a label that is none on one side": _asks(
        lambda d: 7 if d[-1] > 7.5 else 1, RandomizedResponse(3, 0.5)
    ),
    "as many candidates as the data say": _asks(
        lambda d: np.zeros(5 if d[-1] > 7.5 else 2), NoisyMax(1.0), shape=2
    ),
    "a query that fails on one side": _hides(lambda d: 1 / 0 if d[-1] > 7.5 else 0.0),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_what_can_be_seen_of_a_value_may_not_depend_on_data(name):
    # from the side where the release works, and where it runs at all also from the other
    assert not replay(UNEQUAL[name], DATA, LARGE, rng=2).on_plan
    with pytest.raises(OffTranscript):
        privacy_losses(UNEQUAL[name], DATA, LARGE, 3, rng=2)
    if name == "a query that fails on one side":
        assert not replay(UNEQUAL[name], LARGE, DATA, rng=2).on_plan


class Unusual(_NoisySum):
    """Honest, by ways that a replay must follow: empty groups, coins' children, `next`, OffPlan."""

    def plan(self, shape):
        return Parallel([COIN, COIN]) + Repeat(A, 3)

    def run(self, ledger):
        seen = [
            ledger.release_each(COIN, lambda rows: rows, who).sum() for who in ([], slice(None))
        ]
        seen.append(ledger.coins.spawn(1)[0].random())
        while ledger.next is not None:
            seen.append(float(ledger.release(A, np.sum)))
        try:
            ledger.release(A, np.sum)
        except OffPlan:
            seen.append(1.0)
        return seen


def test_a_replay_follows_whatever_a_ledger_allows():
    answers = np.arange(20) % 2
    flipped = answers.copy()
    flipped[3] = 1 - flipped[3]
    found = replay(Unusual(), answers, flipped, rng=1)
    assert found.leak_free, found.witness
    assert found.on_plan
    assert found.deterministic
    assert abs(found.loss) > 0


def test_a_query_that_fails_on_both_sides_is_the_same_on_both():
    found = replay(_hides(lambda d: 1 / 0), DATA, LARGE, rng=2)
    assert found.leak_free
    assert found.on_plan
    assert found.loss == 0.0


class OtherCoefficients(PrivateLinearRegression):
    """Replaces `run`, which the fit of its parent does not call."""

    def run(self, ledger, executor=None):
        return super().run(ledger, executor) + 1.0


class OtherMean(PrivateMean):
    """Replaces `run`, which the fit of its parent calls."""

    def run(self, ledger):
        return super().run(ledger) + 1.0


def test_a_replaced_run_that_no_fit_calls_is_refused_with_the_remedy():
    X = np.linspace(-1, 1, 60).reshape(20, 3)
    other = X.copy()
    other[0] = 0.0
    private = ((X, X[:, 0]), (other, X[:, 0]))
    with pytest.raises(ParameterError, match="one whose fit calls run: override fit too"):
        replay(OtherCoefficients(epsilon=1.0, delta=1e-6), *private, rng=0)
    assert replay(PrivateLinearRegression(epsilon=1.0, delta=1e-6), *private, rng=0).sound
    assert replay(OtherMean(epsilon=1.0), X, other, rng=0).sound


def test_asking_for_more_than_the_plan_is_not_on_plan():
    class Greedy(_NoisySum):
        def run(self, ledger):
            return super().run(ledger) + super().run(ledger)

    found = replay(Greedy(), DATA, OTHER, rng=1)
    assert not found.on_plan
    assert "the plan allows nothing more" in found.witness


def test_an_impossible_answer_has_no_density():
    mechanism = RandomizedResponse(2, 0.75)
    assert mechanism.log_density(5, 1) == -np.inf
    assert np.isneginf(NoisyMax(1.0).log_density(-1, np.zeros(2)))


@pytest.mark.parametrize(
    ("recorded", "other", "loss"),
    [(-1.0, -3.0, 2.0), (-1.0, -math.inf, math.inf), (-math.inf, -math.inf, math.inf)],
)
def test_an_answer_that_neither_value_gives_costs_all(recorded, other, loss):
    """No law of the mechanism has it, so that nothing bounds what it tells."""

    class Given:
        def log_density(self, output, value):
            return np.array([value])

    gate = replayed(A, lambda gate: gate.release(A, np.sum), DATA, DATA)
    gate._add_loss(Given(), 0.0, recorded, other)
    assert gate.loss == loss


def test_a_public_side_gives_the_shape():
    class Labels(_NoisySum):
        def run(self, ledger):
            return float(ledger.release(A, np.sum)) + ledger.public.sum() + ledger.shape[1]

    found = replay(Labels(), DATA, OTHER, public=np.ones((20, 3)), rng=1)
    assert found.leak_free


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [(1.0, 1.0, ""), (1.0, 1.0 + 1e-15, "by 1.11e-15"), (0.0, -0.0, "by 0"),
     (float("nan"), float("nan"), ""), ([1, (2, np.ones(3))], [1, (2, np.ones(3))], ""),
     ({"a": 1}, {"b": 1}, "keys"), ([1], [1, 2], "items"), (1, 1.0, "int against float"),
     (np.ones(2), np.ones(3), "against"), ("a", "b", "a str of length 1"),
     (7, 9, "by 2"), (None, None, "")],
)  # fmt: skip
def test_results_are_compared_bit_by_bit(one, other, words):
    assert (difference(one, other) == "") is (words == "")
    assert words in difference(one, other)


def test_a_result_that_is_no_number_is_refused():
    with pytest.raises(ParameterError, match="result must be"):
        difference(object(), object())


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "3"])
def test_a_number_of_runs_that_is_none_is_refused(bad):
    with pytest.raises(ParameterError, match="runs must be a whole number"):
        privacy_losses(_NoisySum(), DATA, OTHER, bad)


def test_an_honest_claim_survives_the_loss_samples():
    found = audit_algorithm(_NoisySum(), DATA, OTHER, PureLoss(1.0), 300, np.random.default_rng(1))
    assert found.refutation(1 - 1e-9) == ""
    assert 0.5 < found.epsilon_lower(0.0, 0.95) <= 1.0
    epsilons = np.array([0.0, 0.5])
    mean, lower, upper = found.confidence_band(epsilons, 0.95)
    assert np.all(lower <= [Tight().delta(found.plan, epsilon) for epsilon in epsilons])
    assert np.all(mean <= upper)


class CountsLabels(PrivateLogisticRegression):
    """Its own fit publishes how often a label occurs."""

    def fit(self, X, y, **given):
        super().fit(X, y, **given)
        self.ones_ = int(np.sum(y))
        return self


class TakesNoLedger(PrivateLogisticRegression):
    """An audit cannot open the gates of its fit."""

    def fit(self, X, y):
        return super().fit(X, y)


def test_a_fit_in_place_of_that_of_an_estimator_is_driven_itself():
    X, y = np.linspace(-1, 1, 60).reshape(30, 2), np.arange(30) % 2
    pair = (X, y), (X, np.append(1, y[1:]))
    rules = {"epsilon": 1.0, "delta": 1e-6, "classes": [0, 1]}
    assert replay(PrivateLogisticRegression(**rules), *pair, rng=0).data_independent
    found = replay(CountsLabels(**rules), *pair, rng=0)
    assert not found.data_independent
    assert "ones_" in found.witness
    with pytest.raises(ParameterError, match="an estimator whose fit takes ledger="):
        replay(TakesNoLedger(**rules), *pair, rng=0)


class Tagged(float):
    """A number that may carry more than its value."""


def test_what_one_result_carries_alone_is_a_difference():
    bare, tagged = Tagged(1.0), Tagged(1.0)
    tagged.secret = 7
    assert difference(bare, Tagged(1.0)) == ""
    assert difference(bare, tagged) != ""
    assert difference(tagged, bare) != ""


class Fitted:
    """A fit that shows values of every kind."""

    def __init__(self):
        self.coef_ = np.array([1.0, 2.0])
        self.named = {1: [2, (3.0, None)], "names": {"b", "a"}, "rows": slice(1, 5, 2)}
        self.mixed_ = np.array([[1, "x"]], dtype=object)
        self.tool, self.kind, self.itself = math.sqrt, Laplace, self
        self.claim = PureLoss(0.5)
        self._spending = object()

    @property
    def total_(self):
        return float(self.coef_.sum())

    @property
    def unfitted_(self):
        raise AttributeError

    @property
    def other(self):
        raise AssertionError("its name does not end in _")

    @property
    def _hidden_(self):
        raise AssertionError("it is not public")

    def summary(self):
        return f"a fit with total {self.total_}"


def test_what_a_fit_shows_is_its_state_its_fitted_properties_and_its_summary():
    shown = published(Fitted())
    assert shown.pop("coef_").tolist() == [1.0, 2.0]
    name, state = shown.pop("itself")
    assert name == f"{__name__}.Fitted"
    assert state["itself"] == name  # the nest ends there
    assert "_spending" not in state
    assert shown.pop("claim")[0].endswith("PureLoss")
    assert shown.pop("tool") == "math.sqrt"
    assert shown.pop("kind") == f"{Laplace.__module__}.Laplace"
    assert shown == {
        "named": {"1": [2, [3.0, None]], "names": ["'a'", "'b'"], "rows": [1, 5, 2]},
        "mixed_": [[1, 2], [1, "x"]],
        "total_": 3.0,
        "unfitted_": None,
        "summary()": "a fit with total 3.0",
    }


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (deque([1, 2]), deque([1, 3])),
        (Decimal("0.1"), Decimal("0.2")),
        (date(2026, 1, 1), date(2026, 1, 2)),
        (bytearray(b"a"), bytearray(b"b")),
        (partial(max, 1), partial(max, 2)),
        (re.compile("a"), re.compile("b")),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 1])),
    ],
)
def test_what_a_pickle_has_of_an_object_without_attributes_is_shown(value, other):
    assert difference(plain(value), plain(copy.copy(value))) == ""
    assert difference(plain(value), plain(other)) != ""


def test_a_summary_that_tells_a_record_is_a_leak():
    class Telling(PrivateMean):
        first_records: ClassVar[list] = []

        def fit(self, X, y=None, ledger=None):
            self.first_records[:] = [X[0].tolist()]
            return super().fit(X, y, ledger=ledger)

        def summary(self):
            return f"the first record is {self.first_records}"

    rows = np.full((20, 2), 0.25)
    other = np.where(np.arange(20)[:, None] == 0, 0.5, rows)
    for kind, is_sound in ((PrivateMean, True), (Telling, False)):
        found = replay(kind(epsilon=1.0, delta=1e-6), rows, other, rng=1)
        assert found.leak_free is is_sound
        assert found.on_plan
    assert "summary()" in found.witness
