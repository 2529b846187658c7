"""Record what the real libraries write, for tests without them.

In the environment of `make peers`:

    .venv-peers/bin/python -m examples.record_transcripts
"""

from __future__ import annotations

import dataclasses
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TRANSCRIPTS = ROOT / "tests" / "accountant" / "formats" / "transcripts"
DELTA = 1e-5


def tree(value: Any) -> dict[str, Any]:
    """Return a loader or sampler as names, lengths, numbers and the samplers inside it."""
    found: dict[str, Any] = {"class": type(value).__name__}
    try:
        found["length"] = len(value)
    except TypeError:
        found["length"] = None
    names = ("batch_size", "drop_last", "num_samples", "sample_rate", "steps", "total_size",
             "num_batches", "num_replicas", "max_batch_size", "replacement")  # fmt: skip
    for name in names:
        one = getattr(value, name, None)
        if isinstance(one, (bool, int, float)):
            found[name] = one
    if hasattr(value, "indices"):
        found["indices"] = list(value.indices)
    for name in ("sampler", "batch_sampler"):
        if getattr(value, name, None) is not None:
            found[name] = tree(getattr(value, name))
    if hasattr(value, "dataset"):
        found["dataset"] = {"class": type(value.dataset).__name__, "length": len(value.dataset)}
    return found


def opacus() -> dict[str, Any]:
    """Return the histories of short runs, with their loaders."""
    from opacus.accountants import create_accountant

    from examples.opacus_runs import EPOCHS, distributed_loader, runs

    found = {}
    for name, batch, training in runs():
        engine, _, optimizer, loader = training()
        epsilons = {}
        for mechanism in ("prv", "rdp"):
            accountant = create_accountant(mechanism)
            accountant.history = list(engine.accountant.history)
            epsilons[mechanism] = float(accountant.get_epsilon(DELTA))
        found[name] = {
            "history": engine.accountant.history,
            "mechanism": engine.accountant.state_dict()["mechanism"](),
            "loader": tree(loader),
            "batch": batch,
            "epochs": getattr(training, "keywords", {}).get("epochs", EPOCHS),
            "expected_batch_size": optimizer.expected_batch_size,
            "epsilon": epsilons,
        }
    return {
        "versions": {name: version(name) for name in ("opacus", "torch")},
        "delta": DELTA, "runs": found, "distributed loader": tree(distributed_loader()),
    }  # fmt: skip


def flower() -> dict[str, Any]:
    """Return the states of accountants."""
    from flwr.serverapp import (
        GaussianPrivacyEvent,
        NeighboringRelation,
        PrivacyConfig,
        RdpAccountant,
        SamplingMethod,
    )

    neighbours = {
        SamplingMethod.POISSON: NeighboringRelation.ADD_OR_REMOVE_ONE,
        SamplingMethod.NO_AMPLIFICATION: NeighboringRelation.ADD_OR_REMOVE_ONE,
        SamplingMethod.WITHOUT_REPLACEMENT: NeighboringRelation.REPLACE_ONE,
    }
    found = {}
    for method, relation in neighbours.items():
        accountant = RdpAccountant(PrivacyConfig(DELTA, 1000, relation, method))
        for count in (15, 4, 1):
            accountant.compose(GaussianPrivacyEvent(1.0, 50, 1000), count)
        state = accountant.state_dict()
        state.pop("orders")
        found[method.value] = {"state": state, "epsilon": accountant.get_epsilon(DELTA)}
    return {"versions": {"flwr": version("flwr")}, "delta": DELTA, "runs": found}


def jax_privacy() -> dict[str, Any]:
    """Return configurations that the library accepts."""
    os.environ.setdefault("KERAS_BACKEND", "jax")  # read when Keras is imported
    from jax_privacy import keras_api

    def config(**fields: Any) -> dict[str, Any]:
        given: dict[str, Any] = {
            "epsilon": 1.1, "delta": DELTA, "clipping_norm": 1.0, "batch_size": 10,
            "gradient_accumulation_steps": 8, "train_steps": 100, "train_size": 1000,
            "noise_multiplier": 1.0,
        }  # fmt: skip
        return dataclasses.asdict(keras_api.DPKerasConfig(**{**given, **fields}))

    found = {
        "batches added": config(),
        "batches added, drawn in fit": config(poisson_sampling_in_fit=True),
        "one batch": config(gradient_accumulation_steps=1, poisson_sampling_in_fit=True),
        "not calibrated": config(noise_multiplier=None),
    }
    return {"versions": {"jax-privacy": version("jax-privacy")}, "configs": found}


def main() -> None:
    """Write all transcripts."""
    TRANSCRIPTS.mkdir(exist_ok=True)
    for record in (opacus, flower, jax_privacy):
        file = TRANSCRIPTS / f"{record.__name__}.json"
        file.write_text(json.dumps(record(), indent=1) + "\n")
        print(file.name)


if __name__ == "__main__":
    main()
