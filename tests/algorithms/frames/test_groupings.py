"""Several groupings of one answer: they add up, cost nothing more, and their intervals cover."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from accountant import Budget, Filter, ParameterError
from algorithms.frames import (
    Category,
    Flag,
    Integer,
    Number,
    Schema,
    contingency,
    count,
    mean,
    persons,
    sum_,
)  # fmt: skip
from algorithms.frames.noise_tails import half_width
from mechanisms import DiscreteGaussian, DiscreteLaplace

KINDS = {"region": Category(["n", "s", "w"]), "sex": Flag(), "age": Integer(0, 90),
         "pay": Number(-5, 10)}  # fmt: skip
SCHEMA = Schema(KINDS)


def people(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "region": rng.choice(["n", "s", "w"], n), "sex": rng.random(n) < 0.4,
        "age": rng.integers(0, 90, n), "pay": rng.uniform(-5, 10, n),
    })  # fmt: skip


def released(query, seed=0, schema=SCHEMA):
    gate = Filter(people(), Budget(1e6, 1e-6), rng=seed)
    return query.release(gate, schema), gate


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_groupings_add_up_and_cost_nothing_more(noise):
    query = contingency(["region", "sex", "age"], {"age": 3}, noise=noise, scale=40.0)
    answer, gate = released(query)
    spent = gate.spent
    cells, region = answer.by(["region", "sex", "age"]).value, answer.by("region").value
    assert (cells.sum(axis=(1, 2)) == region).all()
    assert (answer.by(["age", "region"]).value == cells.sum(axis=1).T).all()
    assert (answer.by(["age", "region"]).value.sum(axis=0) == region).all()
    assert answer.by().value == region.sum() == cells.sum()
    assert cells.min() < 0 <= answer.value.min()  # clipped counts would not add up
    assert gate.spent == spent
    frame = answer.by(["age", "region"]).frame
    assert list(frame.columns) == ["age_from", "age_to", "region", "count", "lower", "upper"]
    assert frame["region"].tolist()[:4] == ["n", "s", "w", "n"]
    assert type(answer.by().value) is type(answer.by("region").value[0])


def test_sums_are_those_of_their_units():
    answer, _ = released(sum_("pay", by=["region", "sex"], epsilon=50.0))
    plain = people().groupby("region")["pay"].sum().to_numpy()
    assert answer.by("region").value == pytest.approx(plain, abs=5.0)
    assert answer.by("region").value.sum() == pytest.approx(answer.by().value)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(0.6), DiscreteLaplace(30.0),
                                       DiscreteGaussian(0.4), DiscreteGaussian(25.0)])  # fmt: skip
@pytest.mark.parametrize("numbers", [2, 5, 64])
def test_half_widths_of_sums_are_the_least_that_cover(mechanism, numbers):
    reach = np.arange(-math.ceil(45 * mechanism.scale), math.ceil(45 * mechanism.scale) + 1)
    energy = np.abs(reach) / mechanism.scale
    if isinstance(mechanism, DiscreteGaussian):
        energy = energy**2 / 2
    one = np.exp(-energy) / np.exp(-energy).sum()
    law, first = np.ones(1), 0
    for _ in range(numbers):  # by convolution, not by transforms
        law, first = np.convolve(law, one), first + reach[0]
        inside = np.flatnonzero(law > 1e-18)
        law, first = law[inside[0] : inside[-1] + 1], first + inside[0]
    places = np.abs(np.arange(law.size) + first)
    for confidence in (0.5, 0.95, 1 - 1e-6):
        half = half_width(mechanism, confidence, numbers)
        assert law[places <= half].sum() >= confidence - 1e-12
        assert half == 0 or law[places <= half - 1].sum() < confidence + 1e-12


@pytest.mark.parametrize("scale", [1e4, 1e9])
def test_half_widths_of_wide_noise_grow_with_it(scale):
    for kind in (DiscreteLaplace, DiscreteGaussian):
        wide, narrow = (half_width(kind(s), 0.95, 9) / s for s in (scale, 500.0))
        assert wide == pytest.approx(narrow, rel=0.01)
        assert half_width(kind(500.0), 0.95, 2**20) == pytest.approx(
            1.96 * kind(500.0).deviation * 2**10, rel=0.01
        )


@pytest.mark.parametrize(("make", "words"), [
    (lambda: released(count(by="region", epsilon=1.0))[0].by("sex"), "columns must be some of"),
    (lambda: released(count(by="region", epsilon=1.0))[0].by(["region", "region"]), "distinct"),
    (lambda: released(count(by="region", epsilon=1.0))[0].by("region", 1.0), "confidence must"),
    (released(mean("pay", by="region", epsilon=1.0))[0].by, "ask sum_ and count by"),
    (released(persons(by="region", epsilon=1.0))[0].by, "in several groups"),
])  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_intervals_of_groupings_cover():
    truth = people()["region"].value_counts()[["n", "s", "w"]].to_numpy()
    query = count(by=["region", "sex"], scale=2.0, noise="laplace")
    held, answer = [], released(query)[0]
    exact = query.sums(people(), SCHEMA, "laplace")
    for seed in range(200):
        noisy = answer.mechanism.release(exact, seed)
        low, high = replace(answer, released=noisy).by("region", 0.9).interval().T
        held.append((low <= truth) & (truth <= high))
    assert np.mean(held) > 0.85
