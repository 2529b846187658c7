"""A function of a release: any number, and as many."""

import dataclasses
import math

import numpy as np
import pytest

from accountant import ParameterError
from audits import exact
from mechanisms import (
    Clamped,
    Exponential,
    Laplace,
    LazyExponential,
    Mapped,
    PureFromApproximate,
    RandomizedResponse,
    UnaryEncoding,
)
from mechanisms.families.bounded_scores import ListedScores


def test_functions_may_answer_nan_but_not_fewer():
    made = Mapped(RandomizedResponse(3, 0.6), not_a_number_of_zero)
    assert np.exp(made.log_density(math.nan, 0)) == pytest.approx(0.6)
    assert exact(made, 0.2) > 0
    with pytest.raises(ParameterError, match="as many numbers"):
        Mapped(RandomizedResponse(3, 0.6), np.sum).release([0, 1, 2, 0], 1)


@pytest.mark.parametrize("label", range(4))
def test_an_image_of_an_image_is_that_of_the_functions_one_after_the_other(label):
    made = RandomizedResponse(4, 0.6)
    nested = Mapped(Mapped(made, lambda answer: answer // 2), lambda half: 5 - half)
    found = np.exp(nested.log_density(np.arange(3, 7), label))
    each = np.exp(made.log_density(np.arange(4), label))
    assert found == pytest.approx([0.0, each[2:].sum(), each[:2].sum(), 0.0])


WRAPPED = [
    Mapped(Laplace(2.0), np.sign),
    Clamped(Laplace(2.0), low=-1.0, high=3.0),
    PureFromApproximate(Laplace(2.0), 0.5, 6),
]


@pytest.mark.parametrize("made", WRAPPED, ids=lambda made: type(made).__name__)
def test_more_noise_of_a_post_processed_release_is_that_of_the_inner_mechanism(made):
    noisier = made.with_noise_factor(1.25)
    if isinstance(made, PureFromApproximate):  # its own knob is that of the odds
        assert noisier == dataclasses.replace(made, odds=0.625)
    else:
        assert noisier == dataclasses.replace(made, inner=Laplace(2.5))
        assert noisier.loss == Laplace(2.5).loss


def not_a_number_of_zero(output):
    return np.where(np.asarray(output) == 0, math.nan, 1.0)


@pytest.mark.parametrize(
    ("inner", "value"),
    [
        (UnaryEncoding(k=3, q=0.27), 0),
        (Exponential(1.0), [1.0, 2.0]),
        (LazyExponential(1.0), ListedScores([1.0, 2.0])),
        (Laplace(1.0), 0.0),
    ],
    ids=lambda case: type(case).__name__,
)
def test_the_density_of_a_function_of_other_outputs_is_refused(inner, value):
    with pytest.raises(ParameterError, match="whose value is a label"):
        Mapped(inner, np.sign).log_density(0, value)
