"""Scores of rows: weights, bases and tables against sums that are written out."""

import math

import numpy as np
import pytest

from audits.classifiers.linear_scores import (
    LinearScore,
    Pipeline,
    design_block,
    fit_category_table,
    fit_logistic,
    fit_pooled_steps,
    fit_spline_basis,
    mean_difference_weights,
)

RNG = np.random.default_rng(8)
LABELS = np.array([1, 0, 1, 0, 1, 0, 1, 0])
ROWS = RNG.normal(size=(8, 3)) + np.outer(LABELS, [2.0, 0.0, -1.0])


def test_mean_difference_weights_are_the_gaps_over_the_variances():
    ones, zeros = ROWS[::2], ROWS[1::2]
    gap = np.array([sum(a) / 4 - sum(b) / 4 for a, b in zip(ones.T, zeros.T, strict=True)])
    middle = ROWS.sum(axis=0) / 8
    variance = ((ROWS - middle) ** 2).sum(axis=0) / 8
    assert mean_difference_weights(ROWS, LABELS) == pytest.approx(gap / variance)
    assert mean_difference_weights(ROWS, 1 - LABELS) == pytest.approx(-gap / variance)
    score = LinearScore(mean_difference_weights(ROWS, LABELS))(ROWS)
    assert score[::2].mean() > score[1::2].mean()


@pytest.mark.parametrize("label", [0, 1])
def test_runs_of_one_value_have_no_gap(label):
    labels = np.full(8, label)
    assert mean_difference_weights(ROWS, labels).tolist() == [0.0, 0.0, 0.0]
    assert fit_pooled_steps(ROWS, labels).signs.tolist() == [0.0, 0.0, 0.0]


def test_a_constant_column_and_missing_numbers_count_as_nothing():
    rows = np.column_stack([np.full(8, 3.0), np.where(LABELS == 1, np.nan, 1.0)])
    # the missing numbers are 0: the gap is -1 and the variance 1/4
    assert mean_difference_weights(rows, LABELS).tolist() == [0.0, -4.0]


def test_a_basis_keeps_the_columns_that_differ_most():
    rows = RNG.normal(size=(400, 60))
    labels = np.arange(400) % 2
    rows[labels == 1, 50:] += 1.0
    kept = [column for column, *_ in fit_spline_basis(rows, labels, 60).columns]
    assert len(kept) == 48
    assert set(range(50, 60)) < set(kept)


def test_a_basis_of_few_values_has_their_indicators_and_of_many_knots():
    few = np.array([0.0, 1.0, np.nan, 5.0] * 100)
    many = np.linspace(-1, 3, 400)
    basis = fit_spline_basis(np.column_stack([few, many]), np.arange(400) % 2, width=5)
    design = basis(np.array([[1.0, 0.0], [np.nan, 2.0], [7.0, 900.0]]))
    # after the constant: three values of the first column; z, three knots and the sign of z
    expected = [
        [1, 0, 1, 0, -0.5, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0.5, 1.0, 0.5, 0, 1, 1],
        [1, 0, 0, 0, 3.0, 3.5, 3.0, 2.5, 1, 0],
    ]
    assert design == pytest.approx(np.array(expected), abs=1e-6)


def test_products_of_two_columns_are_in_the_basis_of_few_numbers():
    rows = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)] * 4)
    labels = np.arange(16) % 2
    crossed = fit_spline_basis(rows, labels, width=2)(rows[:4])
    # two indicators of each column, and the product of the first ones
    assert crossed.tolist() == [
        [1, 1, 0, 1, 0, 1], [1, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0], [1, 0, 1, 0, 1, 0]
    ]  # fmt: skip
    assert fit_spline_basis(rows, labels, width=5)(rows[:4]).shape == (4, 5)


def test_steps_count_the_numbers_above_deciles_with_their_signs():
    rows = np.column_stack([np.arange(100.0), np.arange(100.0)[::-1], np.tile([0.0, 1.0], 50)])
    labels = (np.arange(100) >= 50).astype(int)
    steps = fit_pooled_steps(rows, labels)
    # above their medians: all ones and no zeros, the other way round, and half of both
    assert steps.signs.tolist() == [1.0, -1.0, 0.0]
    assert steps.knots[:, 0] == pytest.approx(9.9 * np.arange(1, 10))
    design = steps(rows[[0, 99]])
    assert design.tolist() == [[1.0] + [-1.0] * 9, [1.0] + [1.0] * 9]


def test_the_sign_of_a_number_grows_with_the_gap_of_its_shares_above_the_median():
    number = np.arange(100)
    # of the first value 27 of 50 runs are above the median, of the second 23
    labels = np.concatenate([np.repeat([1, 0], [23, 27]), np.repeat([0, 1], [23, 27])])
    [sign] = fit_pooled_steps(number[:, None].astype(float), labels).signs
    assert sign == pytest.approx((27 - 23) / 50 * math.sqrt(100) / 2)


def test_a_table_has_the_log_odds_of_each_code_and_none_of_others():
    codes = np.array([7, 7, 7, 9, 9, 9, 3, 3], np.uint64)
    table = fit_category_table(codes, np.array([1, 1, 1, 0, 0, 0, 1, 0]))
    up, down, even, unknown, high = table(np.array([7, 9, 3, 5, 99], np.uint64))
    assert up == pytest.approx(-down)
    assert up > 0
    assert (even, unknown, high) == (0.0, 0.0, 0.0)


def test_logistic_weights_are_the_log_odds_of_an_indicator():
    # of the rows with the indicator 3 of 4 are of the first value, of the others 1 of 4
    first = np.repeat([[1.0, 1.0], [1.0, 0.0]], [300, 100], axis=0).astype(np.float32)
    second = np.repeat([[1.0, 1.0], [1.0, 0.0]], [100, 300], axis=0).astype(np.float32)
    block = design_block(first, second)
    assert block[1].tolist() == [1.0] * 400 + [0.0] * 400
    assert block[2].tolist() == [[800.0, 400.0], [400.0, 400.0]]
    weights = fit_logistic([block, block], penalty=1e-3)
    assert weights == pytest.approx([-math.log(3), 2 * math.log(3)], rel=2e-2)
    stronger = fit_logistic([block], penalty=1e3)
    assert 0 < stronger[1] < 0.3 * weights[1]


def test_a_pipeline_takes_its_steps_in_order():
    assert Pipeline((lambda x: x + 1, lambda x: 2 * x))(3) == 8
    assert Pipeline(())(3) == 3
