"""Plans to and from JSON and TOML: equal plans back, and errors that say where."""

import json

import pytest

from accountant import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianSum,
    DiscreteLaplaceLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    MixtureOfGaussians,
    NegativeBinomialTries,
    OnePass,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    Repeated,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    ShuffledEpoch,
    SkellamNoise,
    Stated,
    SummedNoiseLoss,
    TruncatedPoisson,
    ZCDPLoss,
)
from accountant.serialisation.plan_json import PlanFileError, from_json, to_json
from accountant.serialisation.registry import plan_kinds
from mechanisms import Gaussian, Laplace, Mapped, NoisyMax, registry

PLANS = [
    PureLoss(0.1),
    0 * ApproxLoss(0.0, 1e-9),
    2 * DiscreteLaplaceLoss(3.0, 2),
    DiscreteGaussianLoss(3.0, 2),
    SummedNoiseLoss(DiscreteGaussianSum(0.7, 30), 2) + SummedNoiseLoss(SkellamNoise(0.3), 1),
    7 * GaussianLoss(1 / 3) + 5 * LaplaceLoss(1e-300),
    Sequential([]),
    Parallel([BoundedRangeLoss(0.5), ZCDPLoss(0.1), ZCDPLoss(0.1, 0.3)]),
    Parallel([PureLoss(0.1), PureLoss(0.1)], by="value", moves=[PureLoss(0.2), PureLoss(0.3)]),
    10 * PoissonSampled(3 * Gaussian(1.1) + Laplace(2.0, sensitivity=0.5), 0.01),
    PoissonSampled(PureLoss(1.0), 0.01).reversed,
    SampledWithoutReplacement(Stated(GaussianLoss(0.2), "replace-one"), 3, 99),
    Shuffled(PureLoss(2.0), 1000),
    MixtureOfGaussians(1.0, (0.0, 1.0, 2.0), (0.2, 0.6, 0.2)).reversed,
    TruncatedPoisson(2 * Gaussian(3.0), 0.01, 1000, 30, "replace-one"),
    PoissonSampled(Stated(LaplaceLoss(1.0), "replace-one"), 0.5, "replace-one"),
    2 * RandomAllocation(Gaussian(1.1), 100, picks=2, epochs=3),
    ShuffledEpoch(GaussianLoss(0.5), 40, "replace-one"),
    ShuffledEpoch(GaussianLoss(0.5), 40) + OnePass(LaplaceLoss(0.3), 40),
    3 * Repeated(Gaussian(5.0), NegativeBinomialTries(0.5, 0.01)),
    Grouped(NoisyMax(2.0, noise="laplace"), 4),
    PairLoss((0.2, 0.5, 0.3, 0.0), (0.5, 0.3, 0.1, 0.1)),
    *[one for cls in registry() if cls is not Mapped for one in cls.instances()],
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: repr(plan)[:60])
def test_json_gives_an_equal_plan_back(plan):
    text = to_json(plan)
    assert from_json(text) == plan
    assert json.loads(text)["schema"] == 1


def test_every_kind_can_be_written():
    written = "".join(map(to_json, PLANS))
    missing = [name for name in plan_kinds() if f'"kind": "{name}"' not in written]
    assert missing == ["Mapped"]  # a file holds no function


def test_a_function_is_not_written():
    with pytest.raises(ParameterError, match="a file holds no function"):
        to_json(Mapped.instances()[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "JSON"),
        ("[]", "'schema' and 'plan'"),
        ('{"schema": 2, "plan": {}}', "schema must be the number 1"),
        ('{"schema": true, "plan": {}}', "schema must be the number 1"),
        ('{"schema": 1, "plan": 3}', "plan must be a table with a 'kind'"),
        ('{"schema": 1, "plan": {"kind": "Pure"}}', "plan.kind must be one of AboveThreshold"),
        ('{"schema": 1, "plan": {"kind": "gausian"}}', r"one of Gaussian \(did you mean"),
        ('{"schema": 1, "plan": {"kind": "PureLoss"}}', "given with epsilon"),
        ('{"schema": 1, "plan": {"kind": "PureLoss", "epsilon": NaN}}', "a finite number"),
        ('{"schema": 1, "plan": {"kind": "PureLoss", "epsilon": 1e999}}', "plan.epsilon must be"),
        ('{"schema": 1, "plan": {"kind": "PureLoss", "epsilon": 1, "x": 2}}', "plan.x must be"),
        ('{"schema": 1, "plan": {"kind": "PureLoss", "kind": "PureLoss"}}', "distinct keys"),
        ('{"schema": 1, "plan": {"kind": "Sequential", "parts": [3]}}', "plan must be a plan"),
        ('{"schema": 1, "plan": {"kind": "Laplace", "scale": true}}', "plan.scale must be"),
        ('{"schema": 1, "plan": ' + '{"kind": "Repeat", "count": 1, "part": ' * 20_000, "deep"),
        ('{"schema": 1, "plan": ' + '{"kind":"Repeat","count":1,"part":' * 200
         + '{"kind":"PureLoss","epsilon":1}' + "}" * 201, "nested at most 50 deep"),
    ],
    ids=range(16),
)  # fmt: skip
def test_bad_json_is_refused(text, words):
    with pytest.raises(PlanFileError, match=words):
        from_json(text)


def test_plans_that_cannot_be_written_are_refused():
    class Undeclared(Stated.__mro__[1]):
        losses = leaves = reversed = None

    Undeclared.__abstractmethods__ = frozenset()
    with pytest.raises(ParameterError, match="declared mechanisms, losses and nodes"):
        to_json(Undeclared())
