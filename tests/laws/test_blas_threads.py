"""Law: no bit of an answer or of a calibration depends on how many threads BLAS may use.

A matrix product or a dot product of BLAS adds in an order that depends on its threads, and they on
the machine and its other work; so the accountant adds with `ordered_sums` alone.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from accountant import (
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Sequential,
    Tight,
    calibrate,
)
from accountant.numerics.ordered_sums import ordered_dot, ordered_product, ordered_sum
from mechanisms import registry
from mechanisms.base.parameters import parameters_of

ROOT = Path(__file__).parents[2]
WIDE = np.linspace(50, 150, 50)
TWELVE = [tuple(np.random.default_rng(seed).dirichlet(np.ones(12))) for seed in (1, 2)]
MANY = np.linspace(1e-4, 3e-4, 11_000)  # more terms than BLAS adds in one thread
PLANS = {
    "sampled Gaussians": 15_000 * PoissonSampled(GaussianLoss(1 / 0.8), 0.004),
    "a few sampled Gaussians": 1000 * PoissonSampled(GaussianLoss(0.25), 0.01),
    "different noises": Sequential(
        [10 * law(1 / scale) for law in (LaplaceLoss, GaussianLoss) for scale in WIDE]
    ),
    "many noises": Sequential(
        [law(x) for law in (LaplaceLoss, GaussianLoss) for x in MANY.tolist()]
    ),
    "twelve outcomes": 3 * PairLoss(*TWELVE),
    "responses": Sequential([40 * PureLoss(0.1 * n**0.5) for n in (1, 2, 3, 5)]),
    "Laplaces": 64 * LaplaceLoss(0.05),
}
TARGETS = ((0.5, 1e-5), (4.0, 1e-9))


def sampled(scale):
    return 15_000 * PoissonSampled(GaussianLoss(1 / scale), 0.004)


def plans():
    """Every bit of the plans' answers, and of a calibration by them."""
    for name, plan in PLANS.items():
        for delta in (1e-3, 1e-6, 1e-10):
            found = Tight().certify(plan, delta)
            yield f"{name}, {delta:g}: {found.lower.hex()} {found.upper.hex()}"
    yield f"noise of sampled Gaussians: {calibrate(sampled, epsilon=3.0, delta=1e-5).hex()}"


def mechanisms():
    """Every bit of the registry's costs and calibrations."""
    for cls in registry():
        one = cls.instances()[0]
        yield f"{one!r}: {Tight().epsilon(50 * one, 1e-6).hex()}"
        names = parameters_of(cls)
        fixed = {name: getattr(one, name) for name in names if not names[name].knob}
        for epsilon, delta in TARGETS if len(fixed) < len(names) else ():
            try:
                found = repr(calibrate(cls, **fixed, epsilon=epsilon, delta=delta))
            except ParameterError as refused:
                found = str(refused)
            yield f"{cls.__name__} of {epsilon:g}: {found}"


def asked_with(threads, answers):
    """The lines of a process whose BLAS may use so many threads."""
    limits = dict.fromkeys(("OPENBLAS", "OMP", "MKL"), str(threads))
    environment = os.environ | {f"{name}_NUM_THREADS": value for name, value in limits.items()}
    name = answers.__name__
    code = f"from tests.laws.test_blas_threads import {name}\nprint(*{name}(), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    return found.stdout.splitlines()


@pytest.mark.parametrize("answers", [plans, pytest.param(mechanisms, marks=pytest.mark.slow)])
def test_answers_and_calibrations_are_the_same_to_the_last_bit(answers):
    with threadpool_limits(1, user_api="blas"):
        one = list(answers())
    two = asked_with(2, answers)
    assert len(one) > 20
    assert [pair for pair in zip(one, two, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize("terms", [5, 100, 500, 12_000, 100_000])
def test_sums_are_the_same_and_right(terms):
    rng = np.random.default_rng(terms)
    rows, weights = rng.normal(size=(3, terms)), rng.normal(size=terms)
    left, right = (rng.normal(size=(n, terms)) + 1j * rng.normal(size=(n, terms)) for n in (32, 31))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(
                (ordered_dot(rows, weights), ordered_sum(weights, rows.T),
                 ordered_product(left, right))
            )  # fmt: skip
    for one, two, size, truth in zip(
        *found, (*[np.abs(rows) @ np.abs(weights)] * 2, np.abs(left) @ np.abs(right.T)),
        (rows @ weights, rows @ weights, left @ right.T), strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(one, two)
        assert np.all(np.abs(one - truth) <= (terms / 16 + 8) * 2**-52 * size)


def test_the_accountant_leaves_no_sum_to_blas():
    """Integers are no matter: BLAS does not add them."""
    found = []
    for path in sorted((ROOT / "accountant").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            call = isinstance(node, ast.Attribute) and node.attr in {
                "dot", "vdot", "matmul", "tensordot", "linalg", "polyfit", "lstsq",
            }  # fmt: skip
            if product or call:
                found.append(path.name)
    # sums of 32-bit words; whole matrices of a strategy, n^3 products: of their sums the round-off
    # is counted in whatever order, and what is decoded by them is noisy already
    assert set(found) == {"sqlite.py", "dense_matrix.py", "toeplitz.py"}
