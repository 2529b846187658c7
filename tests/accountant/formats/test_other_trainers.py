"""Flower and jax-privacy: what their accountants count is tied to what was drawn, or refused."""

import dataclasses
import math

import numpy as np
import pytest
from dp_accounting import dp_event

from accountant import (
    GaussianLoss,
    ParameterError,
    PoissonSampled,
    SampledWithoutReplacement,
    Stated,
    Tight,
    TruncatedPoisson,
    UnsupportedPlan,
    from_flower,
    from_jax_privacy,
)
from accountant.amplification.group_privacy import sampled_group_loss
from accountant.formats.added_samples import added_samples
from tests.accountant.formats.transcripts_of import transcript

FLOWER = transcript("flower")
JAX = transcript("jax_privacy")["configs"]
DELTA = FLOWER["delta"]
EVENT = {"noise_multiplier": 1.0, "sample_size": 50, "population_size": 1000}
BANDED = {
    "iterations": 1000, "expected_participations": 10, "strategy": [1.0, 0.5, 0.25],
    "noise_multiplier": 2.0,
}  # fmt: skip
PLANS = {
    "poisson": PoissonSampled(GaussianLoss(1.0), 0.05),
    "no-amplification": Stated(GaussianLoss(1.0), "zero-out"),
    "without-replacement": SampledWithoutReplacement(GaussianLoss(2.0), 50, 1000),
}


class FedAvg:
    def configure_train(self):
        """Draws a fixed number of clients."""


class Coins(FedAvg):
    def configure_train(self):
        """Draws each client by a coin."""


@dataclasses.dataclass
class Clipping:
    strategy: object
    noise_multiplier: float = 1.0
    num_sampled_clients: int = 50

    def configure_train(self):
        """Asks the inner strategy."""


def state(method, **config):
    given = FLOWER["runs"][method]["state"]
    return {**given, "config": {**given["config"], **config}}


def composed(count=1, **fields):
    return {**state("poisson"), "compositions": [{"event": {**EVENT, **fields}, "count": count}]}


@pytest.mark.parametrize("method", PLANS)
def test_the_state_of_flowers_accountant_is_read(method):
    run = FLOWER["runs"][method]
    plan = from_flower(run["state"])
    assert [(one.part, one.count) for one in plan.parts] == [(PLANS[method], 20)]

    class RdpAccountant:
        def state_dict(self):
            return run["state"]

    assert from_flower(RdpAccountant()) == plan
    assert from_flower([EVENT] * 20, sampling=method) == plan
    if method != "without-replacement":  # there Flower counts one clipping length of two
        epsilon = Tight().epsilon(plan, DELTA)
        assert 0.75 * run["epsilon"] < epsilon < run["epsilon"]


def test_a_client_in_the_place_of_another_moves_a_sum_by_two_clipping_lengths():
    run = FLOWER["runs"]["without-replacement"]
    # the lower end is that of a pair of data sets: Flower's number is below what they show
    assert Tight(1e-4).certify(from_flower(run["state"]), DELTA).lower > 2 * run["epsilon"]


def test_a_list_of_events_of_dp_accounting_is_read():
    sampled = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(1.0))
    assert from_flower([sampled, sampled]).parts == (PLANS["poisson"],) * 2
    assert from_flower([dp_event.GaussianDpEvent(1.0)], relation="replace-one").parts == (
        GaussianLoss(2.0),
    )
    with pytest.raises(UnsupportedPlan):
        from_flower([dp_event.UnsupportedDpEvent()])


@pytest.mark.parametrize(
    ("method", "strategy", "words"),
    [
        ("poisson", Clipping(FedAvg()), "a fixed number of clients is drawn"),
        ("poisson", Clipping(Clipping(FedAvg())), "a fixed number of clients is drawn"),
        ("no-amplification", Clipping(FedAvg(), 0.5), "noise 1 is counted and 0.5 is added"),
        ("without-replacement", Clipping(FedAvg(), 1.0, 40), "50 clients a round are counted"),
        ("no-amplification", FedAvg(), "one that adds noise"),
    ],
)
def test_a_strategy_that_did_otherwise_is_refused(method, strategy, words):
    with pytest.raises(ParameterError, match=words):
        from_flower(state(method), strategy)


@pytest.mark.parametrize("method", PLANS)
def test_a_strategy_that_did_as_counted_is_read(method):
    inner = Coins() if method == "poisson" else FedAvg()
    assert from_flower(state(method), Clipping(inner)).parts[0].count == 20


@pytest.mark.parametrize(
    "wrong",
    [
        None, 3, "text", {}, {"a": 1}, [3], [EVENT], state("poisson", sampling_method="coins"),
        state("poisson", population_size=999), state("poisson", population_size=True),
        state("poisson", neighboring_relation="replace-one"),
        {**state("poisson"), "schema_version": 2}, {**state("poisson"), "compositions": [3]},
        composed(count=-1), composed(count=True), composed(sample_size=2000),
        composed(noise_multiplier=0.0), composed(noise_multiplier=math.nan),
    ],
)  # fmt: skip
def test_no_state_of_flower_is_trusted(wrong):
    with pytest.raises(ParameterError):
        from_flower(wrong)


def test_the_config_of_jax_privacy_whose_batches_are_added():
    # google-deepmind/jax_privacy#271: the library accepted the noise at .72, for one batch in eight
    config = JAX["batches added"]
    with pytest.raises(ParameterError) as caught:
        from_jax_privacy(config, loader="poisson")
    message = str(caught.value)
    assert "epsilon 1.1 is claimed at delta 1e-05, and 5.614 is true" in message
    assert "0.7181 would be that of a single batch" in message
    least = float(message.partition("noise_multiplier to ")[2].split()[0])
    kept = from_jax_privacy({**config, "noise_multiplier": least}, loader="poisson")
    assert 1.09 < Tight().epsilon(kept, 1e-5) <= 1.1
    claimed = from_jax_privacy({**config, "epsilon": 5.614}, loader="poisson")
    assert Tight().epsilon(claimed, 1e-5) == pytest.approx(5.613418626, rel=1e-8)
    alone = {**config, "gradient_accumulation_steps": 1}
    assert round(Tight().epsilon(from_jax_privacy(alone, loader="poisson"), 1e-5), 2) == 0.72


def test_batches_that_are_drawn_one_by_one_can_hold_a_record_several_times():
    drawn, added = JAX["batches added, drawn in fit"], JAX["batches added"]
    few = {"train_steps": 1, "gradient_accumulation_steps": 2, "epsilon": 0.1}
    with pytest.raises(ParameterError, match=r"2 Poisson samples of 10 of 1,000 records"):
        from_jax_privacy({**drawn, **few})
    for config, loader in ((drawn, None), (added, "poisson batches")):
        plan = from_jax_privacy({**config, "epsilon": None}, loader)
        assert plan == 100 * added_samples(1.0, 0.01, 8)
    assert Tight(width=1e-8).epsilon(plan, 1e-5) == pytest.approx(6.7481408088, rel=1e-8)


@pytest.mark.parametrize(
    ("loader", "samples"),
    [("poisson", "one Poisson sample of 20"), ("poisson batches", "2 Poisson samples of 10")],
)
def test_what_is_added_for_an_update_is_said_where_the_claim_is_too_small(loader, samples):
    few = {"train_steps": 1, "gradient_accumulation_steps": 2, "epsilon": 0.01, "delta": 1e-6}
    words = f"2 batches of 10 are added for each update, {samples} of 1,000 records, and 0"
    with pytest.raises(ParameterError, match=words):
        from_jax_privacy({**JAX["batches added"], **few}, loader)


def test_added_samples_are_those_of_a_group_all_of_which_is_added():
    for noise, rate, added in ((1.0, 0.01, 8), (2.0, 0.999, 2)):
        one = PoissonSampled(GaussianLoss(1 / noise), rate)
        group, found = sampled_group_loss(one, added, added), added_samples(noise, rate, added)
        epsilons = np.linspace(-3, 6, 7)
        for ours, theirs in ((found, group), (found.reversed, group.reversed)):
            assert ours.profile(epsilons) == pytest.approx(theirs.profile(epsilons), abs=1e-10)
            assert (ours.profile(epsilons) >= theirs.profile(epsilons) * (1 - 1e-13)).all()


@pytest.mark.parametrize(("added", "rate"), [(2, 0.9), (4, 0.0625), (300, 0.001), (5, 1 - 1e-16)])
def test_chances_of_counts_are_rounded_towards_more_samples(added, rate):
    from scipy.stats import binom

    loss = added_samples(1.0, rate, added)
    shifts, weights = list(loss.shifts), list(loss.weights)
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-15)
    for hits in range(added):
        more = math.fsum(w for shift, w in zip(shifts, weights, strict=True) if shift > hits)
        truth = binom.sf(hits, added, rate)
        assert truth * (1 - 1e-11) <= more <= truth * (1 + 1e-9) + 2e-18


def test_a_configuration_that_keeps_its_claim_is_read():
    plan = from_jax_privacy(JAX["one batch"])
    assert (plan.part, plan.count) == (PoissonSampled(GaussianLoss(1.0), 0.01), 100)
    with pytest.raises(ParameterError, match="poisson_sampling_in_fit is off"):
        from_jax_privacy({**JAX["one batch"], "poisson_sampling_in_fit": False})
    with pytest.raises(ParameterError, match="get_noise_multiplier"):
        from_jax_privacy(JAX["not calibrated"])


def test_a_banded_mechanism_is_read():
    plan = from_jax_privacy(BANDED)
    assert (plan.part, plan.count) == (PoissonSampled(GaussianLoss(0.5), 0.03), 334)
    cut = from_jax_privacy({**BANDED, "truncated_batch_size": 60, "num_examples": 5000})
    assert cut.part == TruncatedPoisson(GaussianLoss(0.5), 0.03, 1667, 60)
    with pytest.raises(ParameterError, match=r"1\.163 is true"):
        from_jax_privacy(BANDED, epsilon=1.0, delta=1e-5)
    assert from_jax_privacy(BANDED, epsilon=1.2, delta=1e-5) == plan
    config = dataclasses.make_dataclass("BandMFConfig", BANDED)(**BANDED)
    assert from_jax_privacy(config) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"noise_multiplier": math.nan}, {"noise_multiplier": True}, {"noise_multiplier": 0.0},
        {"batch_size": True}, {"batch_size": 2000}, {"batch_size": 10.0}, {"train_size": -1},
        {"train_steps": 0}, {"gradient_accumulation_steps": 101}, {"epsilon": "1"},
        {"gradient_accumulation_steps": 0}, {"poisson_sampling_in_fit": 1}, {"delta": None},
        {"delta": 0.0}, {"epsilon": math.nan}, {"another": 1},
    ],
)  # fmt: skip
def test_no_config_is_trusted(change):
    with pytest.raises(ParameterError):
        from_jax_privacy({**JAX["one batch"], **change})


@pytest.mark.parametrize(
    "wrong",
    [
        None, 3, [1], {}, {"batch_size": 3}, {**BANDED, "strategy": "abc"},
        {**BANDED, "strategy": []}, {**BANDED, "iterations": 2}, {**BANDED, "iterations": True},
        {**BANDED, "expected_participations": 500}, {**BANDED, "truncated_batch_size": 60},
        {**BANDED, "strategy": 3},
    ],
)  # fmt: skip
def test_malformed_configurations_are_refused(wrong):
    with pytest.raises(ParameterError):
        from_jax_privacy(wrong)
    with pytest.raises(ParameterError, match="loader"):
        from_jax_privacy(JAX["one batch"], "coins")
