"""Draws of torch on a stand-in whose tensors are arrays: their numbers, types and costs."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from accountant import ApproxLoss, GaussianLoss, LaplaceLoss, Tight
from audits import record
from audits.recorded_runs.draws import torch_draws


class Tensor(np.ndarray):
    """An array with the few methods of a tensor that the recording calls."""

    def as_subclass(self, kind):
        return self.view(kind)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return np.array(self)

    @property
    def data(self):
        return self

    def copy_(self, numbers):
        self[...] = numbers

    normal_ = uniform_ = exponential_ = None  # the draws that are replaced


class LaplaceOfTorch:
    def __init__(self, loc, scale):
        self.loc, self.scale = (x if isinstance(x, Tensor) else tensor(x) for x in (loc, scale))

    def _extended_shape(self, sample_shape):
        return (*sample_shape, *np.broadcast_shapes(self.loc.shape, self.scale.shape))

    rsample = None


class Generator:
    def manual_seed(self, seed):
        self.seed = seed
        return self


def tensor(numbers, dtype=np.float32):
    return np.array(numbers, dtype=dtype).view(Tensor)


def randperm(count, generator):
    keys = np.modf(generator.seed / np.arange(1.0, count + 1))[
        0
    ]  # no draw of numpy: it is recorded
    return np.argsort(keys).view(Tensor)


@pytest.fixture
def torch(monkeypatch):
    module = ModuleType("torch")
    names = ("randn", "rand", "randn_like", "rand_like", "normal", "randint", "bernoulli")
    vars(module).update(
        dict.fromkeys([*names, "multinomial"]),
        Tensor=Tensor, Generator=Generator, randperm=randperm,
        distributions=SimpleNamespace(Laplace=LaplaceOfTorch),
        from_numpy=lambda array: array.view(Tensor), get_default_dtype=lambda: "torch.float32",
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(torch_draws, "_tensor_classes", {})
    return module


def filled(x, name, *arguments):
    buffer = tensor(np.zeros(2), x.dtype)
    noise = getattr(buffer, name)(*arguments)
    assert np.array_equal(buffer, noise.as_plain())
    return noise


GAUSSIAN, NO_LOSS = GaussianLoss(np.sqrt(0.5)), 0 * LaplaceLoss(1.0)
# draws whose location is the data, their shape, and the loss of numbers that all move by 1
NOISES = [
    (lambda torch, x: torch.distributions.Laplace(x, 2.0).rsample(), (2,), 2 * LaplaceLoss(0.5)),
    (
        lambda torch, x: torch.distributions.Laplace(x[:1], 2.0).rsample((3,)),
        (3, 1),
        3 * LaplaceLoss(0.5),
    ),
    (lambda torch, x: torch.normal(x, 2.0), (2,), GAUSSIAN),
    (lambda torch, x: torch.normal(x, tensor([2.0, 2.0])), (2,), GAUSSIAN),
    (lambda torch, x: torch.normal(x, 2.0, size=(1, 2)), (1, 2), GAUSSIAN),
    (lambda torch, x: filled(x, "normal_", x, 2.0), (2,), GAUSSIAN),
    (lambda torch, x: filled(x, "uniform_", x, x + 4), (2,), 2 * ApproxLoss(0.0, 0.25)),
    (lambda torch, x: torch.randn_like(x), (2,), NO_LOSS),
    (lambda torch, x: torch.rand_like(x), (2,), NO_LOSS),
    (lambda torch, x: torch.randn(size=(4, 1)), (4, 1), NO_LOSS),
    (lambda torch, x: torch.rand((4, 1)), (4, 1), NO_LOSS),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("draw", "shape", "loss"), NOISES, ids=range(len(NOISES)))
def test_draws_have_their_shape_and_type_and_cost(torch, draw, shape, loss, dtype):
    torch.get_default_dtype = lambda: np.dtype(dtype)
    seen = []

    def function(x):
        drawn = draw(torch, tensor(x, dtype))
        seen.append(np.array(drawn.as_plain()))
        return drawn

    found = record(function, np.zeros(2), np.ones(2), delta=1e-5)
    assert (found.draws, found.cost) == (1, pytest.approx(Tight().epsilon(loss, 1e-5)))
    assert {(numbers.shape, numbers.dtype) for numbers in seen} == {(shape, np.dtype(dtype))}
    assert all(np.array_equal(numbers, seen[0]) for numbers in seen)


MANY = 2000
LAWS = [
    (lambda torch: torch.distributions.Laplace(3.0, 2.0).rsample((MANY,)), stats.laplace(3, 2)),
    (lambda torch: torch.normal(3.0, 2.0, size=(MANY,)), stats.norm(3, 2)),
    (lambda torch: torch.normal(std=2.0, size=(MANY,)), stats.norm(0, 2)),
    (lambda torch: torch.normal(3.0, size=(MANY,)), stats.norm(3, 1)),
    (lambda torch: torch.randn(MANY // 2, 2), stats.norm),
    (lambda torch: torch.randn_like(tensor(np.ones(MANY))), stats.norm),
    (lambda torch: torch.rand(MANY), stats.uniform),
    (lambda torch: torch.rand_like(tensor(np.ones(MANY))), stats.uniform),
    (lambda torch: tensor(np.ones(MANY)).normal_(), stats.norm),
    (lambda torch: tensor(np.ones(MANY)).normal_(3.0, 2.0), stats.norm(3, 2)),
    (lambda torch: tensor(np.ones(MANY)).uniform_(), stats.uniform),
    (lambda torch: tensor(np.ones(MANY)).uniform_(-1.0, 3.0), stats.uniform(-1, 4)),
    (lambda torch: tensor(np.ones(MANY)).exponential_(), stats.expon),
    (lambda torch: tensor(np.ones(MANY)).exponential_(4.0), stats.expon(0, 0.25)),
]


@pytest.mark.parametrize(("draw", "law"), LAWS, ids=range(len(LAWS)))
def test_numbers_have_their_law(torch, draw, law):
    seen = []
    record(lambda x: seen.append(np.ravel(draw(torch).as_plain())), np.zeros(2), np.ones(2))
    assert stats.kstest(seen[0], law.cdf).pvalue > 1e-9


def test_a_coin_is_drawn_once_and_handed_out_plain(torch):
    seen = []

    def function(x):
        order = torch.randperm(9)
        seen.append(order.tolist())
        order[...] = 0  # the record of the draw is another array
        return x.sum() + np.random.laplace()

    for seed in (1, 2):
        assert record(function, np.zeros(2), np.ones(2), seed=seed).sound
    assert sorted(seen[0]) == list(range(9))
    half = len(seen) // 2
    assert all(one == seen[0] for one in seen[:half])
    assert seen[0] != seen[half]
    with pytest.raises(TypeError):
        torch.randperm(9)  # everything is put back: this one has no generator
