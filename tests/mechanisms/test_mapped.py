"""A function of a release: any number, and as many."""

import math

import numpy as np
import pytest

from accountant import ParameterError
from audits import exact
from mechanisms import (
    Exponential,
    Laplace,
    LazyExponential,
    Mapped,
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
