"""Our accountants inside dp-accounting, and inside a few lines that stand for Opacus."""

import copy
import math
import pickle
import sys
import types

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event

from accountant import GaussianLoss, Grouped, ParameterError, PoissonSampled, Tight, from_opacus
from accountant.formats.dp_accounting import TightAccountant

RELATION = dp_accounting.NeighboringRelation
GAUSSIAN = dp_event.GaussianDpEvent(1.0)


def dp_sgd(noise, steps=1000):
    sampled = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(noise))
    return dp_event.SelfComposedDpEvent(sampled, steps)


def test_dp_accounting_calibrates_with_it():
    noise = dp_accounting.calibrate_dp_mechanism(TightAccountant, dp_sgd, 2.0, 1e-6)
    # what dp-accounting's own PLDAccountant finds is a little more
    assert 1.0290200 < noise < 1.0290225
    assert TightAccountant().compose(dp_sgd(noise)).get_epsilon(1e-6) <= 2.0
    steps = dp_accounting.calibrate_dp_mechanism(
        TightAccountant, lambda n: dp_sgd(1.0, n), 2.0, 1e-6, discrete=True,
        bracket_interval=dp_accounting.LowerEndpointAndGuess(1, 128),
    )  # fmt: skip
    costs = [
        TightAccountant().compose(dp_sgd(1.0, n)).get_epsilon(1e-6) for n in (steps, steps + 1)
    ]
    assert costs[0] <= 2.0 < costs[1]


def test_its_answers_are_below_those_of_dp_accounting():
    ours = TightAccountant().compose(dp_sgd(1.0, 100))
    orders = [1.5, 2.0, 8.0, 32.0]
    rdp = dp_accounting.rdp.RdpAccountant(orders).compose(dp_sgd(1.0, 100))
    pld = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    pld.compose(dp_sgd(1.0, 100))
    assert pld.get_epsilon(1e-6) - 1e-3 < ours.get_epsilon(1e-6) <= pld.get_epsilon(1e-6)
    assert ours.get_delta(0.5) <= pld.get_delta(0.5) < 1.01 * ours.get_delta(0.5)
    # at whole orders both are exact; between them dp-accounting interpolates
    found = ours.get_rdp(orders)
    assert found[1:] == pytest.approx(rdp.rdp[1:], rel=1e-9)
    assert found[0] < rdp.rdp[0]


def test_equal_events_composed_one_by_one_are_counted():
    ours = TightAccountant()
    for _ in range(3):
        ours.compose(GAUSSIAN).compose(dp_sgd(2.0, 5), 2)
    same = TightAccountant().compose(GAUSSIAN, 3).compose(dp_sgd(2.0, 30))
    assert ours.get_epsilon(1e-5) == pytest.approx(same.get_epsilon(1e-5), rel=1e-9)
    assert len(TightAccountant().compose(GAUSSIAN).compose(GAUSSIAN, 4).plan.parts) == 1
    assert ours.ledger.events[0] == GAUSSIAN
    assert copy.deepcopy(ours).plan == ours.plan


def test_no_events_cost_nothing_and_events_without_noise_cost_infinity():
    none = TightAccountant()
    assert (none.get_epsilon(0.0), none.get_delta(0.0), none.get_rdp([2.0])[0]) == (0.0, 0.0, 0.0)
    silent = dp_event.GaussianDpEvent(0.0)
    for event in (
        dp_event.NonPrivateDpEvent(), silent, dp_event.PoissonSampledDpEvent(0.1, silent),
        dp_event.ComposedDpEvent([GAUSSIAN, silent]), dp_event.SelfComposedDpEvent(silent, 2),
        dp_event.LaplaceDpEvent(0.0), dp_event.ZCDpEvent(math.inf),
        dp_event.GaussianDpEvent(np.float32(0)), dp_event.LaplaceDpEvent(np.int64(0)),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [1.0], [1.0]),
    ):  # fmt: skip
        ours = TightAccountant().compose(event)
        assert ours.get_epsilon(1e-5) == math.inf
        # as in the test that dp-accounting gives to those who write an accountant
        assert (ours.get_epsilon(1.0), ours.get_delta(3.0)) == (math.inf, 1.0)
        assert np.isinf(ours.get_rdp([2.0, 3.0])).all()
    assert TightAccountant().compose(dp_event.NoOpDpEvent()).get_epsilon(1e-5) == 0.0
    for event in (
        dp_event.SelfComposedDpEvent(silent, 0), dp_event.DiscreteLaplaceDpEvent(1.0, 0),
        dp_event.TruncatedSubsampledGaussianDpEvent(10, 0.0, 5, 1.0),
    ):  # fmt: skip
        ours = TightAccountant()
        assert ours.supports(event)
        assert ours.plan == TightAccountant().plan


def test_the_relations_are_those_of_dp_accounting():
    for relation, mu in zip(RELATION, (1.0, 2.0, 1.0), strict=True):
        found = TightAccountant(relation).compose(GAUSSIAN).get_epsilon(1e-5)
        assert found == Tight().epsilon(GaussianLoss(mu), 1e-5)


def test_an_event_that_is_not_known_changes_nothing():
    ours = TightAccountant().compose(GAUSSIAN)
    for event in (
        dp_event.UnsupportedDpEvent(), dp_event.GaussianDpEvent(math.nan),
        dp_event.ComposedDpEvent([GAUSSIAN, dp_event.UnsupportedDpEvent()]),
    ):  # fmt: skip
        assert not ours.supports(event)
        with pytest.raises(dp_accounting.UnsupportedEventError):
            ours.compose(event)
    assert ours.plan == TightAccountant().compose(GAUSSIAN).plan
    assert ours.ledger == GAUSSIAN


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: TightAccountant("add-remove"), lambda: TightAccountant(width=1.0),
        lambda: TightAccountant().compose(GAUSSIAN, -1),
        lambda: TightAccountant().compose(GAUSSIAN, True),
        lambda: TightAccountant().get_epsilon(math.nan),
        lambda: TightAccountant().get_epsilon(1.5), lambda: TightAccountant().get_delta(-1.0),
        lambda: TightAccountant().get_rdp([1.0]), lambda: TightAccountant().get_rdp(2.0),
        lambda: TightAccountant().get_rdp([True]),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


class IAccountant:
    """What Opacus' own base class does, in short."""

    def __init__(self):
        self.history = []

    def state_dict(self):
        return {"history": copy.deepcopy(self.history), "mechanism": type(self).mechanism}

    def load_state_dict(self, state_dict):
        if (
            "history" not in (state_dict or {})
            or state_dict.get("mechanism") != type(self).mechanism
        ):
            raise ValueError("state_dict cannot be loaded")
        self.history = state_dict["history"]


class Optimizer:
    noise_multiplier, accumulated_iterations = 1.0, 1


@pytest.fixture
def opacus(monkeypatch):
    """A package of the names that we use, with our accountant registered in it."""

    def create_accountant(mechanism):
        raise ValueError(f"unexpected: {mechanism}")

    names = ("opacus", "opacus.accountants", "opacus.accountants.utils", "opacus.privacy_engine")
    made = {name: types.ModuleType(name) for name in names}
    made["opacus"].accountants = made["opacus.accountants"]
    for name in names[1:]:
        made[name].create_accountant = create_accountant
    made["opacus.accountants"].utils = made["opacus.accountants.utils"]
    made["opacus"].privacy_engine = made["opacus.privacy_engine"]
    made["opacus.accountants"].IAccountant = IAccountant
    for name, module in made.items():
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    ours = "accountant.formats.opacus_accountant"
    monkeypatch.delitem(sys.modules, ours, raising=False)
    from accountant.formats.opacus import register

    register()
    yield made
    sys.modules.pop(ours, None)


@pytest.fixture
def accountant(opacus):
    return opacus["opacus.privacy_engine"].create_accountant(mechanism="tight")


def test_opacus_makes_it_by_name_in_every_module(opacus):
    from accountant.formats.opacus import register

    makers = [opacus[name].create_accountant for name in list(opacus)[1:]]
    assert [make("tight").mechanism() for make in makers] == ["tight"] * 3
    register()
    assert makers == [opacus[name].create_accountant for name in list(opacus)[1:]]
    with pytest.raises(ValueError, match="unexpected: rdp"):
        makers[0]("rdp")


def test_it_counts_steps_as_opacus_does(accountant):
    for _ in range(3):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    accountant.step(noise_multiplier=2.0, sample_rate=0.01)
    assert accountant.history == [(1.0, 0.01, 3), (2.0, 0.01, 1)]
    assert len(accountant) == 2
    accountant.history.pop()
    expected = Tight().epsilon(from_opacus(accountant, assume="poisson"), 1e-5)
    assert accountant.get_epsilon(1e-5) == accountant.get_epsilon(1e-5, eps_error=0.1) == expected


def test_batches_that_are_added_are_kept_with_their_number(accountant):
    hook, optimizer = accountant.get_optimizer_hook_fn(sample_rate=0.0625), Optimizer()
    hook(optimizer)
    optimizer.accumulated_iterations = 4
    hook(optimizer)
    hook(optimizer)
    assert accountant.history == [(1.0, 0.0625, 1), (1.0, 0.0625, 2, 4)]
    accountant.history = [(1.0, 0.0625, 1, 4)]
    found = accountant.get_epsilon(1e-5)
    group = Grouped(PoissonSampled(GaussianLoss(1.0), 0.0625), 4)
    assert found == pytest.approx(Tight(1e-4).epsilon(group, 1e-5), rel=1e-4)
    # Opacus counts one sample of four times the rate, and too little
    assert Tight().epsilon(PoissonSampled(GaussianLoss(1.0), 0.25), 1e-5) < 0.6 * found


def test_its_state_is_saved_and_loaded(accountant, opacus):
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    state = accountant.state_dict()
    other = opacus["opacus.accountants"].create_accountant("tight")
    other.load_state_dict(state)
    assert other.history == accountant.history
    other.load_state_dict({"history": [[1.0, 0.01, 7]], "mechanism": "tight"})  # from JSON
    assert other.history == [(1.0, 0.01, 7)]
    assert pickle.loads(pickle.dumps(state)) == state
    for wrong in ([(1.0, 2.0, 3)], "text", [(1.0, 0.1, True)]):
        with pytest.raises(ParameterError):
            other.load_state_dict({"history": wrong, "mechanism": "tight"})
        assert other.history == [(1.0, 0.01, 7)]
    with pytest.raises(ValueError, match="cannot be loaded"):
        other.load_state_dict({"history": [], "mechanism": "rdp"})


def test_no_step_costs_nothing_and_one_without_noise_everything(accountant):
    assert accountant.get_epsilon(1e-5) == 0.0
    accountant.step(noise_multiplier=0.0, sample_rate=0.0)
    assert accountant.get_epsilon(1e-5) == 0.0
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    assert accountant.get_epsilon(1e-5) == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a.step(noise_multiplier=-1.0, sample_rate=0.1),
        lambda a: a.step(noise_multiplier=math.nan, sample_rate=0.1),
        lambda a: a.step(noise_multiplier=True, sample_rate=0.1),
        lambda a: a.step(noise_multiplier=1.0, sample_rate=1.5),
        lambda a: a.get_optimizer_hook_fn(-0.1), lambda a: a.get_epsilon(math.nan),
        lambda a: a.get_epsilon(1.0), lambda a: a.get_epsilon(True),
    ],
)  # fmt: skip
def test_the_accountant_in_opacus_refuses_wrong_arguments(accountant, wrong):
    with pytest.raises(ParameterError):
        wrong(accountant)
    assert accountant.history == []
    accountant.history = [(1.0, "text", 3)]
    with pytest.raises(ParameterError):
        accountant.get_epsilon(1e-5)
