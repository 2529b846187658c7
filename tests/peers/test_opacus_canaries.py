"""Canaries in trainings by the real Opacus: kinds of loaders, faults, what is refused."""

import copy

import pytest

opacus = pytest.importorskip("opacus", reason="Opacus is not installed: make peers")

from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402

import accountant.formats.opacus  # noqa: E402, F401  # which knows the accountant "tight"
from accountant import GaussianLoss, ParameterError  # noqa: E402
from audits import Outcome, opacus_canaries  # noqa: E402
from examples import audit_opacus  # noqa: E402
from examples.opacus_runs import DataLoader, data, torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


def private(engine, records=300, batch=60, features=4, **options):
    network = torch.nn.Sequential(torch.nn.Linear(features, 20), torch.nn.Linear(20, 2))
    given = {"noise_multiplier": 1.0, "max_grad_norm": 2.0, "poisson_sampling": True} | options
    return engine.make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.05),
        data_loader=DataLoader(data(records), batch, shuffle=True),
        **given,
    )


def steps(model, optimizer, loader, epochs=2):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


@pytest.mark.slow  # a training of 100 steps takes a second
@pytest.mark.parametrize("name", audit_opacus.FAULTS)
def test_faults_fall_and_the_honest_training_survives(name):
    canaries, _ = audit_opacus.train(audit_opacus.FAULTS[name], seed=0)
    assert (canaries.audit().outcome is Outcome.FALSIFIED) == (
        name not in {"honest", "no noise on one layer"}
    )
    small = name in {"half the noise", "no noise on one layer"}
    assert (canaries.audit_noise().outcome is Outcome.FALSIFIED) == small


@pytest.mark.parametrize("accountant", ["prv", "rdp", "tight"])
@pytest.mark.parametrize("before", [True, False])
def test_canaries_enter_before_and_after_make_private(accountant, before):
    engine = opacus.PrivacyEngine(accountant=accountant)
    canaries = opacus_canaries(engine, 50, rng=0) if before else None
    parts = private(engine)
    canaries = canaries or opacus_canaries(engine, 50, rng=0)
    steps(*parts)
    assert canaries.inner.steps == 10
    assert canaries.inner.rate == pytest.approx(0.2)
    found = canaries.audit()
    assert found.outcome is Outcome.INCONCLUSIVE
    noise = canaries.audit_noise()
    assert noise.numbers > 400
    assert 0.8 < noise.estimate < 1.2


def test_what_a_step_releases_less_the_records_is_noise_and_canaries():
    """Without noise a step moves by one clipping length along the canaries that it used."""
    engine = opacus.PrivacyEngine()
    canaries = opacus_canaries(engine, 50, rng=0)
    model, optimizer, loader = private(engine)
    optimizer.add_noise = lambda: [
        setattr(parameter, "grad", parameter.summed_grad.clone()) for parameter in optimizer.params
    ]
    seen = []
    observe = canaries.inner.observe_along
    canaries.inner.observe_along = lambda released, others: (
        seen.append((released - others, canaries.inner._drawn.copy())), observe(released, others)
    )  # fmt: skip
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=16, optimizer=optimizer
    ) as parts:
        steps(model, optimizer, parts)
    assert len(seen) == 10
    for moved, drawn in seen:
        assert moved == pytest.approx(drawn * 1.0, abs=1e-4)
    assert canaries.audit(GaussianLoss(0.2)).outcome is Outcome.FALSIFIED


def test_noise_that_is_changed_after_make_private_is_named():
    engine = opacus.PrivacyEngine()
    canaries = opacus_canaries(engine, 50, rng=0)
    model, optimizer, loader = private(engine)
    optimizer.noise_multiplier = 0.5
    steps(model, optimizer, loader)
    assert "the noise multiplier was 1 at first" in canaries.audit().witness
    assert canaries.audit_noise().outcome is Outcome.SURVIVED  # the accountant counted that
    assert canaries.audit_noise(1.0).outcome is Outcome.FALSIFIED


def test_a_loader_that_shuffles_is_refused_where_poisson_samples_are_counted():
    engine = opacus.PrivacyEngine()
    canaries = opacus_canaries(engine, 50, rng=0)
    steps(*private(engine, poisson_sampling=False))
    with pytest.raises(ParameterError, match="poisson_sampling=True"):
        canaries.audit()
    assert canaries.audit((3.0, 1e-5)).claim.infinity == 1e-5  # another claim is judged


def test_records_train_as_without_canaries_where_none_is_drawn():
    torch.manual_seed(3)
    engine = opacus.PrivacyEngine()
    generator = torch.Generator().manual_seed(1)
    canaries = opacus_canaries(engine, 10, rng=0)
    model, optimizer, loader = private(engine, noise_generator=generator)
    canaries.inner.rate = 0.0
    batches = list(loader)
    before = copy.deepcopy(model.state_dict())
    steps(model, optimizer, batches, epochs=1)
    with_canaries = torch.cat([one.ravel() for one in model.state_dict().values()])

    plain = opacus.PrivacyEngine()
    generator = torch.Generator().manual_seed(1)
    model, optimizer, _ = private(plain, noise_generator=generator)
    model.load_state_dict(before)
    steps(model, optimizer, batches, epochs=1)
    without = torch.cat([one.ravel() for one in model.state_dict().values()])
    assert torch.allclose(with_canaries, without, atol=1e-6)


def test_what_canaries_cannot_enter_is_refused():
    with pytest.raises(ParameterError, match="GradientCanaries"):
        opacus_canaries(object(), 50)
    engine = opacus.PrivacyEngine()
    canaries = opacus_canaries(engine, 50)
    for call in (canaries.audit, canaries.audit_noise, lambda: canaries.power(10)):
        with pytest.raises(ParameterError, match="make_private"):
            call()
    opacus_canaries(engine := opacus.PrivacyEngine(), 5000)
    with pytest.raises(ParameterError, match="at most the 142 trained parameters"):
        private(engine)
    for options in (
        {"clipping": "per_layer", "max_grad_norm": [1.0] * 4},
        {"grad_sample_mode": "ghost", "criterion": torch.nn.CrossEntropyLoss()},
    ):
        opacus_canaries(engine := opacus.PrivacyEngine(), 50)
        with pytest.raises(ParameterError, match="clipping='flat'"):
            private(engine, **options)
    opacus_canaries(engine := opacus.PrivacyEngine(), 50)
    model, optimizer, loader = private(engine, poisson_sampling=False)
    x, y = next(iter(loader))
    for _ in range(2):
        torch.nn.functional.cross_entropy(model(x), y).backward()
    with pytest.raises(ParameterError, match="several Poisson samples"):
        optimizer.step()
