"""Flower's accountant and strategies, and the configurations of jax-privacy, as installed."""

import dataclasses

import pytest

from accountant import ParameterError, Tight, from_flower, from_jax_privacy

pytestmark = pytest.mark.filterwarnings("default")
DELTA = 1e-5


@pytest.fixture
def flower():
    return pytest.importorskip("flwr.serverapp", reason="Flower is not installed: make peers")


@pytest.fixture
def config(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # read when Keras is imported
    reason = "jax-privacy is not installed: make peers"
    pytest.importorskip("jax_privacy", reason=reason)
    keras_api = pytest.importorskip("jax_privacy.keras_api", reason=reason)

    def made(**fields):
        given = {
            "epsilon": 1.1, "delta": DELTA, "clipping_norm": 1.0, "batch_size": 10,
            "gradient_accumulation_steps": 8, "train_steps": 100, "train_size": 1000,
            "noise_multiplier": 1.0,
        }  # fmt: skip
        return keras_api.DPKerasConfig(**{**given, **fields})

    return made


def test_flowers_accountant_is_read(flower):
    relations = {"POISSON": "ADD_OR_REMOVE_ONE", "WITHOUT_REPLACEMENT": "REPLACE_ONE",
                 "NO_AMPLIFICATION": "ADD_OR_REMOVE_ONE"}  # fmt: skip
    for method, relation in relations.items():
        drawn = flower.SamplingMethod[method]
        named = flower.NeighboringRelation[relation]
        accountant = flower.RdpAccountant(flower.PrivacyConfig(DELTA, 1000, named, drawn))
        event = flower.GaussianPrivacyEvent(1.0, 50, 1000)
        accountant.compose(event, 20)
        plan = from_flower(accountant)
        assert plan == from_flower([event] * 20, sampling=drawn.value)
        epsilon = Tight().epsilon(plan, DELTA)
        assert (epsilon > accountant.get_epsilon(DELTA)) == (method == "WITHOUT_REPLACEMENT")
        strategy = flower.strategy.DifferentialPrivacyServerSideFixedClipping(
            flower.strategy.FedAvg(), 1.0, 0.5, 50
        )
        if method == "POISSON":
            with pytest.raises(ParameterError, match="a fixed number of clients"):
                from_flower(accountant, strategy)
        else:
            assert from_flower(accountant, strategy) == plan


def test_a_config_of_jax_privacy_is_read(config):
    # the release that is tried accepts a noise whose epsilon is that of one batch in eight
    for given in (config(), dataclasses.asdict(config())):
        with pytest.raises(ParameterError, match=r"5\.614 is true"):
            from_jax_privacy(given, "poisson")
    kept = config(epsilon=6.0)
    assert round(Tight().epsilon(from_jax_privacy(kept, "poisson"), DELTA), 3) == 5.613
