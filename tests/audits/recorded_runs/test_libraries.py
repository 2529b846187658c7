"""Recorded runs of other libraries, where they are installed."""

import sys
from types import ModuleType

import numpy as np
import pytest

from audits import record

ROWS = np.random.default_rng(0).uniform(size=(60, 3))
LABELS = (ROWS[:, 0] > 0.5).astype(int)
OTHER = np.where(np.arange(60)[:, None] == 3, 1 - ROWS, ROWS)
LARGER = np.where(np.arange(60)[:, None] == 3, -3 * ROWS, ROWS)


class Mechanism:
    """Stands for the base of the mechanisms of diffprivlib."""


class Shifted(Mechanism):
    """A mechanism of a library, whose own draws are its own business."""

    def __init__(self):
        self.epsilon, self.sensitivity = 0.3, 1.0

    def randomise(self, value):
        return value + np.random.laplace(scale=1 / 0.3)


def quantile(array, quant, epsilon=1.0):
    return np.random.uniform()


def test_mechanisms_of_a_library_cost_what_they_declare(monkeypatch):
    fakes = {
        "diffprivlib.mechanisms": {}, "diffprivlib.mechanisms.base": {"DPMechanism": Mechanism},
        "diffprivlib.tools.quantiles": {"quantile": quantile},
    }  # fmt: skip
    for name, members in fakes.items():
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        vars(sys.modules[name]).update(members)
    tools = sys.modules["diffprivlib.tools.quantiles"]
    found = record(lambda x: tools.quantile(x, 0.5, epsilon=0.7), ROWS[:, 0], OTHER[:, 0])
    assert found.cost == pytest.approx(0.7)
    assert tools.quantile is quantile  # put back
    found = record(lambda x: Shifted().randomise(x.sum()), np.zeros(3), np.eye(3)[0])
    assert found.sound, found


@pytest.fixture
def diffprivlib():
    return pytest.importorskip("diffprivlib")


MODELS = {
    "mean": lambda library, x, **more: library.tools.mean(x[:, 0], bounds=(0, 1), **more),
    "variance": lambda library, x, **more: library.tools.var(x[:, 0], bounds=(0, 1), **more),
    "median": lambda library, x, **more: library.tools.median(x[:, 0], bounds=(0, 1), **more),
    "naive Bayes": lambda library, x, **more: library.models.GaussianNB(
        bounds=(0, 1), **more
    ).fit(x, LABELS),
    "logistic regression": lambda library, x, **more: library.models.LogisticRegression(
        data_norm=2.0, **more
    ).fit(x, LABELS),
    "scaler": lambda library, x, **more: library.models.StandardScaler(
        bounds=(0, 1), **more
    ).fit(x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS)
def test_correct_estimators_of_diffprivlib_raise_no_alarm(diffprivlib, model):
    def fit(x):
        account = diffprivlib.BudgetAccountant()
        return MODELS[model](diffprivlib, x, epsilon=1.0, accountant=account)

    found = record(fit, ROWS, OTHER, claim=1.0)
    assert found.sound, found


@pytest.mark.filterwarnings("ignore")
def test_a_sensitivity_of_zero_is_found(diffprivlib):
    def fit(x):
        model = diffprivlib.models.LinearRegression(
            epsilon=0.1, bounds_X=(0, 1), bounds_y=(0, 1),
            accountant=diffprivlib.BudgetAccountant(),
        )  # fmt: skip
        return model.fit(x, LABELS.astype(float))

    assert "sensitivity" in {finding.kind for finding in record(fit, ROWS, OTHER).findings}


@pytest.mark.filterwarnings("ignore")
def test_classes_of_the_data_are_found(diffprivlib):
    def fit(data):
        model = diffprivlib.models.GaussianNB(
            epsilon=1.0, bounds=(0, 1), accountant=diffprivlib.BudgetAccountant()
        )
        return model.fit(*data)

    rare = np.append(np.zeros(59, dtype=int), 1)
    found = record(fit, (ROWS, rare), (ROWS[:-1], rare[:-1]))
    assert "control flow" in {finding.kind for finding in found.findings}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("scale", "kinds"), [(1.0, []), (3.0, ["sensitivity"])])
def test_a_measurement_of_opendp_moves_by_one_at_most(scale, kinds):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    release = dp.m.make_laplace(*space, scale=2.0)
    found = record(lambda x: release(float(x.sum()) * scale), np.ones(5), np.ones(4), claim=0.5)
    assert [finding.kind for finding in found.findings] == kinds


def test_code_may_change_the_output_of_a_measurement(monkeypatch):
    class Measurement:
        input_metric, output_measure = "L1Distance(f64)", "MaxDivergence"

        def __call__(self, argument):
            return [number + np.random.default_rng().laplace() for number in argument]

        def map(self, distance):
            return float(distance)

    module = ModuleType("opendp.mod")
    module.Measurement = Measurement
    monkeypatch.setitem(sys.modules, "opendp.mod", module)
    release = Measurement()

    def shifted(rows):
        noisy = release([float(rows.sum()), 0.0])
        noisy[0] += 1.0
        return noisy

    found = record(shifted, np.ones(5), np.ones(4), claim=1.0)
    assert found.sound
    assert found.cost == 1.0


def descent(torch, clip):
    def fit(rows):
        rows = torch.as_tensor(rows).float()
        weights = torch.nn.Parameter(torch.zeros(3))
        optimiser = torch.optim.SGD([weights], 0.1)
        for _ in range(4):
            optimiser.zero_grad()
            slopes = rows - weights.detach()
            if clip:
                slopes = slopes / torch.clamp(slopes.norm(dim=1, keepdim=True), min=1.0)
            total = slopes.sum(0)
            weights.grad = (total + torch.normal(0.0, 8.0, size=total.shape)) / 60
            optimiser.step()
        return weights.detach()

    return fit


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("clip", [True, False])
def test_descent_in_torch_is_followed(clip):
    torch = pytest.importorskip("torch")
    # four steps that move by 2 at most with noise 8: a Gaussian with shift 1 / 2
    found = record(descent(torch, clip), ROWS, 4 * LARGER, claim=(2.1, 1e-5))
    assert [finding.kind for finding in found.findings] == ([] if clip else ["cost"])


@pytest.mark.filterwarnings("ignore")
def test_noise_of_torch_is_followed():
    torch = pytest.importorskip("torch")

    def release(rows):
        total = torch.as_tensor(rows).clamp(0, 1).sum()
        return total + torch.distributions.Laplace(0.0, 3.0).sample(), torch.randperm(4)

    plain = torch.randn
    found = record(release, ROWS, OTHER, claim=1.0)
    assert found.sound, found
    assert 0 < found.cost < 1
    assert torch.randn is plain


class Measurement:
    """Stands for a measurement of OpenDP: Laplace noise of scale 2 on each number."""

    def __init__(self, metric, measure="MaxDivergence", distance=float):
        self.input_metric, self.output_measure, self.distance = metric, measure, distance

    def __call__(self, argument):
        return np.asarray(argument) + np.random.laplace(scale=2.0, size=np.shape(argument))

    def map(self, distance):
        if type(distance) is not self.distance:
            raise TypeError(distance)
        return 0.5 * distance


@pytest.mark.parametrize(
    ("metric", "measure", "moved", "kinds", "cost"),
    [
        ("AbsoluteDistance(f64)", "MaxDivergence", [1.0], [], 0.5),
        ("AbsoluteDistance(f64)", "MaxDivergence", [1.5], ["sensitivity"], 0.5),
        ("L1Distance(f64)", "MaxDivergence", [0.5, -0.5], [], 0.5),
        ("L1Distance(f64)", "MaxDivergence", [0.6, -0.6], ["sensitivity"], 0.5),
        ("L2Distance(f64)", "ZeroConcentratedDivergence", [0.6, -0.8], [], 4.728),
        ("L2Distance(f64)", "ZeroConcentratedDivergence", [0.7, -0.8], ["sensitivity"], 4.728),
        ("SymmetricDistance()", "MaxDivergence", [9.0, 9.0], [], 0.5),
    ],
)
def test_a_measurement_costs_what_its_map_says(monkeypatch, metric, measure, moved, kinds, cost):
    module = ModuleType("opendp.mod")
    module.Measurement = Measurement
    monkeypatch.setitem(sys.modules, "opendp.mod", module)
    distance = int if metric == "SymmetricDistance()" else float
    release = Measurement(metric, measure, distance)
    returned = []

    def function(rows):
        released = release(rows.sum(axis=0))
        returned.append(released)
        return released

    rows = np.zeros((3, len(moved)))
    other = np.where(np.arange(3)[:, None] == 1, moved, rows)
    found = record(function, rows, other, delta=1e-5)
    assert sorted({finding.kind for finding in found.findings}) == kinds
    assert found.cost == pytest.approx(cost, rel=1e-3)
    # the call gives what the measurement drew, and the same in the second run
    assert all(np.abs(released).max() > 0 for released in returned)
    assert np.array_equal(returned[0], returned[1])
    assert Measurement.__call__.__qualname__ == "Measurement.__call__"
