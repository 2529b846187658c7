"""Plans to and from JSON and TOML: equal plans back, and errors that say where."""

import json

import pytest

from accountant import (
    ApproxLoss,
    BoundedRangeLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    PairLoss,
    Parallel,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Repeat,
    SampledWithoutReplacement,
    Sequential,
    Shuffled,
    Stated,
    ZCDPLoss,
)
from accountant.formats.plan_json import PlanFileError, from_json, to_json
from accountant.formats.plan_toml import PlanSyntaxError, from_toml
from accountant.formats.registry import plan_kinds
from mechanisms import Gaussian, Laplace, Mapped, NoisyMax, registry

PLANS = [
    PureLoss(0.1),
    0 * ApproxLoss(0.0, 1e-9),
    7 * GaussianLoss(1 / 3) + 5 * LaplaceLoss(1e-300),
    Sequential([]),
    Parallel([BoundedRangeLoss(0.5), ZCDPLoss(0.1), ZCDPLoss(0.1, 0.3)]),
    Parallel([PureLoss(0.1), PureLoss(0.1)], by="value", moves=[PureLoss(0.2), PureLoss(0.3)]),
    10 * PoissonSampled(3 * Gaussian(1.1) + Laplace(2.0, sensitivity=0.5), 0.01),
    PoissonSampled(PureLoss(1.0), 0.01).reversed,
    SampledWithoutReplacement(Stated(GaussianLoss(0.2), "replace-one"), 3, 99),
    Shuffled(PureLoss(2.0), 1000),
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
    ids=range(15),
)  # fmt: skip
def test_bad_json_is_refused(text, words):
    with pytest.raises(PlanFileError, match=words):
        from_json(text)


GOOD = """
# a comment
[[release]]
kind = "Laplace"
scale = 20.0
count = 64

[[release]]
kind = "PoissonSampled"
rate = 0.004
count = 15000
part = { kind = "Gaussian", scale = 0.8 }

[[release]]
kind = "Parallel"
parts = [
  { kind = "PureLoss", epsilon = 0.1, count = 3 },
  { kind = "GaussianLoss", mu = 0.2 },
]
"""


def test_toml_is_the_same_plan():
    sampled = Repeat(PoissonSampled(Gaussian(0.8), 0.004), 15_000)
    groups = Parallel([Repeat(PureLoss(0.1), 3), GaussianLoss(0.2)])
    assert from_toml(GOOD) == Sequential([Repeat(Laplace(20.0), 64), sampled, groups])
    assert from_toml('[[release]]\nkind = "PureLoss"\nepsilon = 1') == PureLoss(1.0)


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        ("rate = 0.004", "rate = nan", 10, 1, "rate must be a number in"),
        ("rate = 0.004", "rate = 1.5", 10, 1, r"\[0, 1\], got 1.5"),
        ("scale = 20.0", "scael = 20.0", 5, 1, "scael must be absent: Laplace has scale"),
        ("scale = 20.0", "", 3, 3, "given with scale"),
        ('"Laplace"', '"Laplac"', 4, 1, "kind must be one of"),
        ("count = 64", "count = 6.5", 6, 1, "count must be a whole number"),
        ("count = 64", "count = -1", 6, 1, "count must be a whole number"),
        ("scale = 0.8", "scale = -1", 12, 29, "scale must be a number in"),
        ("epsilon = 0.1", "epsilon = true", 17, 24, "epsilon must be"),
        ("count = 64", "count = 64\ncount = 65", 7, 11, "Cannot overwrite"),
        ("scale = 20.0", "scale = ", 5, 9, "Invalid value"),
        ("# a comment", 'title = "x"', 2, 1, "unknown key 'title'"),
        (GOOD, "", 1, 1, "no \\[\\[release\\]\\] tables"),
        (GOOD, "release = 3", 1, 1, "no \\[\\[release\\]\\] tables"),
        (GOOD, "x = " + "[" * 100_000, 1, 105, "nested too deeply"),
        (GOOD, "x" * 1_000_001, 1, 1, "longer than 1,000,000"),
    ],
    ids=range(16),
)
def test_errors_say_line_and_column(old, new, line, column, words):
    with pytest.raises(PlanSyntaxError, match=words) as caught:
        from_toml(GOOD.replace(old, new))
    assert caught.value.line == line
    assert caught.value.column == column


def test_what_cannot_be_written_is_refused():
    class Undeclared(Stated.__mro__[1]):
        losses = leaves = reversed = None

    Undeclared.__abstractmethods__ = frozenset()
    with pytest.raises(ParameterError, match="declared mechanisms, losses and nodes"):
        to_json(Undeclared())
