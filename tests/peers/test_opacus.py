"""Opacus itself with our accountant, and short trainings read with the loaders they had."""

import copy
import io
import json

import pytest

opacus = pytest.importorskip("opacus", reason="Opacus is not installed: make peers")

from opacus.accountants import create_accountant  # noqa: E402

from accountant import ParameterError, Tight, from_opacus  # noqa: E402
from accountant.formats.loader_facts import loader_facts  # noqa: E402
from accountant.formats.opacus import opacus_record  # noqa: E402
from examples.opacus_runs import (  # noqa: E402
    BATCH,
    RECORDS,
    DataLoader,
    data,
    distributed_loader,
    runs,
    train,
)

pytestmark = pytest.mark.filterwarnings("default")
DELTA = 1e-5
RUNS = {name: (batch, training) for name, batch, training in runs()}
POISSON = [name for name in RUNS if name.startswith("poisson")]


def loader():
    return DataLoader(data(), BATCH, shuffle=True)


@pytest.mark.parametrize("name", POISSON)
def test_poisson_samples_are_read(name):
    batch, training = RUNS[name]
    engine, _, _, trained_on = training()
    plan = from_opacus(engine, trained_on, epochs=2, batch=batch)
    epsilon = Tight().epsilon(plan, DELTA)
    assert epsilon <= engine.get_epsilon(DELTA) + 1e-6
    record = json.loads(json.dumps(opacus_record(engine, trained_on)))
    assert from_opacus(record, epochs=2) == plan


@pytest.mark.parametrize("name", [name for name in RUNS if name not in POISSON])
def test_other_draws_are_refused(name):
    batch, training = RUNS[name]
    engine, _, _, trained_on = training()
    with pytest.raises(ParameterError):
        from_opacus(engine, trained_on, batch=batch)


def test_the_loader_of_a_process_is_read():
    assert loader_facts(distributed_loader()).order == "poisson"


def test_the_engine_takes_our_accountant_by_name():
    engine, model, optimizer, trained_on = train(loader(), accountant="tight")
    epsilon = engine.get_epsilon(DELTA)
    assert epsilon == Tight().epsilon(from_opacus(engine, trained_on, epochs=2), DELTA)
    for mechanism, most in (("prv", 0.02), ("rdp", 1.0)):
        other = create_accountant(mechanism)
        other.history = list(engine.accountant.history)
        assert epsilon <= other.get_epsilon(DELTA) < epsilon + most
    assert copy.deepcopy(engine.accountant).get_epsilon(DELTA) == epsilon

    file = io.BytesIO()
    engine.save_checkpoint(path=file, module=model, optimizer=optimizer)
    file.seek(0)
    again, model, optimizer, _ = train(loader(), accountant="tight", epochs=0)
    again.load_checkpoint(path=file, module=model, optimizer=optimizer)
    assert again.get_epsilon(DELTA) == epsilon
    file.seek(0)
    other, model, optimizer, _ = train(loader(), epochs=0)
    with pytest.raises(ValueError, match="cannot be loaded"):
        other.load_checkpoint(path=file, module=model, optimizer=optimizer)


def test_the_engine_calibrates_by_our_accountant():
    target = {"target_epsilon": 3.0, "target_delta": DELTA}
    engine, _, _, _ = train(loader(), accountant="tight", epochs=5, **target)
    assert 2.99 < engine.get_epsilon(DELTA) <= 3.0


def test_poisson_samples_that_are_added_cost_more_than_opacus_counts():
    options = {"added": 4, "allow_accumulation": True, "epochs": 1}
    engine, _, _, trained_on = train(loader(), accountant="tight", **options)
    rate = 1 / -(-RECORDS // BATCH)
    assert engine.accountant.history == [(1.0, rate, 4, 4)]
    theirs, _, _, _ = train(loader(), **options)
    assert theirs.accountant.history == [(1.0, 4 * rate, 4)]
    assert theirs.get_epsilon(DELTA) < 0.6 * engine.get_epsilon(DELTA)
    with pytest.raises(ParameterError, match="gradients of 4 batches were added"):
        from_opacus(theirs, trained_on)
