"""What people do wrong in their first hours is answered in words that name the remedy.

Issue 45 tried 67 mistakes and names the kinds; these are 67 of those kinds.  No answer shows a
value of the data: each record here has digits that no message may have.
"""
# ruff: noqa: F401  # names that the mistakes use, which are evaluated

import math
import re
import traceback
import warnings
from functools import partial

import numpy as np
import pytest

from accountant import (
    RDP,
    Book,
    Budget,
    Filter,
    Ledger,
    Odometer,
    PureLoss,
    SensitivityWarning,
    Tight,
    calibrate,
)
from algorithms import (
    FrankWolfe,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateTopK,
    SparseERM,
    clipped_share,
)
from algorithms.frames import Number, Schema, mean
from audits import audit
from dp_attest.__main__ import main
from mechanisms import DiscreteLaplace, Gaussian, Laplace

SECRET = "7193"
AGES = np.full(120, 40.7193)
X = np.full((60, 3), 1e6) + 0.7193
Y = np.full(60, 0.7193)


def noisy(value, rng):
    return value + rng.laplace()


def gate(**other):
    return Filter(AGES, Budget(1.0, **other))


def lasso(**other):
    return PrivateLasso(epsilon=1.0, delta=1e-6, rounds=2, **other)


# what is done; and words of the answer, an error or a warning
IN_PYTHON = [
    ("Laplace()", "Laplace(scale=1.0, sensitivity=1.0)"),
    ("Laplace(0)", "number in [1e-300"),
    ("Laplace(epsilon=1)", "calibrate(Laplace, epsilon=1) finds the noise"),
    ("Laplace(scale=1, sensitvity=2)", "did you mean 'sensitivity'?"),
    ("Gaussian(sigma=1.0)", "scale="),
    ("calibrate(Gaussian, 1.0, 1e-5)", "epsilon=1.0, delta=1e-6)"),
    ("calibrate(Gaussian, epsilon=1.0)", "delta must be above 0"),
    ("calibrate(Gaussian, epsilon=1.0, delta=0.5)", "above 0.01"),
    ("calibrate(Laplace)", "calibrate(..., epsilon=1.0"),
    ("calibrate('Laplace', epsilon=1.0)", "mechanism"),
    ("Tight().epsilon(3 * Laplace(9.0))", "epsilon(plan, delta=1e-6)"),
    ("RDP().epsilon(3 * Laplace(9.0))", "epsilon(plan, delta=1e-6)"),
    ("Tight().delta(Laplace(9.0))", "delta(plan, epsilon=1.0)"),
    ("Tight().epsilon([Laplace(9.0), Laplace(9.0)], 1e-6)", "Sequential([...])"),
    ("Tight().epsilon(Laplace, 1e-6)", "with its numbers"),
    ("3.5 * Laplace(1.0)", "whole number"),
    ("Budget()", "Budget(epsilon=1.0)"),
    ("Budget(eps=1.0)", "did you mean 'epsilon'?"),
    ("Budget(1e-6, 1)", "Budget(1, 1e-06) if swapped"),
    ("Filter(AGES, 1.0)", "Filter(data, Budget(epsilon=1.0, delta=1e-6))"),
    ("Filter(AGES, epsilon=1.0)", "Filter(data, Budget(epsilon=1.0, delta=1e-6))"),
    ("Filter(Budget(1.0), AGES)", "after the data"),
    ("Filter(AGES, Budget(1.0, 0.5))", "above 1/n = 0.00833 for 120 users"),
    ("Ledger(2 * Laplace(1.0), AGES)", "before the plan"),
    ("Odometer()", "Odometer(data)"),
    ("gate().release(np.sum, Laplace(9.0))", "mechanism must be a mechanism"),
    ("gate().release(Laplace(9.0))", "gate.release(mechanism, query)"),
    ("gate().release(Laplace(9.0), np.sum(AGES))", "query must be a function"),
    ("gate().release(Laplace(1.0), np.sum)", "clip in the query"),
    ("gate().release(Laplace(9.0), lambda ages: ages @ ages)", "120 rows that move it by"),
    ("gate().release(Laplace(9.0), lambda ages: ages[:3])", "a vector needs shape="),
    ("gate().release(Laplace(0.1), np.max)", "fits"),
    ("gate().release(Gaussian(9.0), np.max)", "a budget with delta > 0"),
    ("gate().release(DiscreteLaplace(9.0), np.max)", "integer type"),
    ("Ledger(AGES, 2 * Laplace(1.0)).release(Laplace(2.0), np.max)", "the plan allows Laplace"),
    ("book.remaining('visits')", "book.remaining(\"visits\", plan)"),
    ("book.ledger('visits', AGES, author='ada')", "Book.open(\"book.db\", author=\"ada\")"),
    ("book.ledger('vists', AGES)", "a data set of this book"),
    ("book.ledger('visits')", "book.ledger(\"visits\", data)"),
    ("book.dataset('more', epsilon=1.0)", "Budget(epsilon=1.0, delta=1e-6)"),
    ("Book.open('nowhere.db')", "Book.create"),
    ("lasso(alpha=1.0)", "PrivateLasso(epsilon=1.0, delta=1e-6)"),
    ("PrivateLasso(epsilon=1)", "PrivateLasso(epsilon=1.0, delta=1e-6)"),
    ("lasso().fit(X)", "requires y"),
    ("lasso().predict(X)", "not fitted"),
    ("SparseERM(epsilon=1.0, delta=1e-6, sparsity=2).fit(X, Y)", "loss='squared'"),
    ("SparseERM(epsilon=1.0, delta=1e-6, sparsity=2, classes=[0, 1]).fit(X, Y)", "y.astype(int)"),
    ("lasso(x_bound=1.0).fit(X, Y).summary()", "records are clipped to x_bound=1.0"),
    ("clipped_share(PrivateTopK(k=3, categories=9, epsilon=1.0), X, epsilon=1.0)", "x_bound or y"),
    ("mean('age', epsilon=1.0).release(AGES, Schema({'age': Number(0, 110)}))", "must be"),
    ("Number()", "Number(0, 100)"),
    ("audit(noisy, (0.0, 1.0), 1.0, runs=100, rng=0)", "too few runs to see half of Laplace noise"),
    ("audit(noisy, (0.0, 1.0), epsilon=1.0)", "claim=1.0"),
    ("audit(noisy, claim=PureLoss(1.0))", "pair must be two neighbouring values"),
]  # fmt: skip
ON_THE_COMMAND_LINE = [
    ("acount plan plan.toml", "did you mean 'account'?"),
    ("account pln plan.toml", "did you mean 'plan'"),
    ("account plan", "missing argument 'plan'"),
    ("account plan nowhere.toml", "a file that can be read"),
    ("account plan plan.yaml", "a .toml or .json file"),
    ("account plan plan.toml --delta 0.5", "above 0.01"),
    ("account compare plan.toml --json keep.json", "--force"),
    ("account training --examples 100", "give --batch"),
    ("ledger status nowhere.db", "ledger open --new"),
    ("audit Laplce", "did you mean 'laplace'?"),
    ("audit tagret mycode:release", "did you mean 'target'?"),
    ("audit target mycode:release --epsilon 1 --pair 0 1", "--allow-import"),
    ("audit Laplace --runs 3", "--runs must be"),
]


def answered(error_or_warnings, words):
    """Whether the answer has the words, is one short text, and shows no record."""
    assert words.lower() in error_or_warnings.lower()
    assert SECRET not in error_or_warnings


def test_there_are_67():
    assert len(IN_PYTHON) + len(ON_THE_COMMAND_LINE) == 67


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    with Book.create(str(tmp_path_factory.mktemp("books") / "book.db")) as opened:
        opened.dataset("visits", Budget(1.0))
        yield opened


@pytest.mark.parametrize(("mistake", "words"), IN_PYTHON, ids=[row[0] for row in IN_PYTHON])
def test_a_mistake_in_python_is_answered(mistake, words, book):
    with warnings.catch_warnings(record=True, action="always") as said:
        try:
            answer = repr(eval(mistake, globals(), {"book": book}))
        except (TypeError, ValueError, RuntimeError) as error:
            answer = str(error)
    answered(" ".join([answer, *(str(one.message) for one in said)]), words)


@pytest.mark.parametrize(("mistake", "words"), ON_THE_COMMAND_LINE)
def test_a_mistake_on_the_command_line_is_answered(mistake, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(
        '[budget]\nepsilon = 1.0\ndelta = 1e-6\n[[release]]\nkind = "Gaussian"\nscale = 60.0\n'
    )
    (tmp_path / "keep.json").write_text("{}")
    with warnings.catch_warnings(action="always"):
        status = main(mistake.split())
    shown = capsys.readouterr().err
    answered(shown, words)
    assert status == 2 or "warning: " in shown
    assert shown.count("\n") == 1


def test_arguments_that_fit_raise_what_they_raise():
    """An error inside of a call is not taken for one of the call."""

    def broken(ages):
        raise TypeError("of the query")

    with pytest.raises(TypeError, match=r"^of the query$"):
        gate().release(Laplace(9.0), broken)
    with pytest.raises(TypeError, match=r"did you mean 'delta'\?"):
        FrankWolfe(epsilon=1.0, dleta=1e-6)


SUMS = [np.sum, sum, np.nansum, math.fsum, lambda x: x.sum(), lambda x: float(np.sum(x))]


@pytest.mark.parametrize("query", SUMS, ids=range(6))
def test_a_plain_sum_is_warned_of_whatever_the_values_are(query):
    """The warning follows from types and code: data of zeros and data of millions give the same."""
    said = []
    for data in (np.zeros(5), np.full(5, 1e6), np.zeros(50, dtype=int)):
        with pytest.warns(SensitivityWarning) as found:
            Filter(data, Budget(1.0)).release(Laplace(9.0), query)
        said.append(str(found[0].message))
        assert found[0].filename == __file__
    assert len(set(said)) == 1
    assert not re.search(r"\d{4}", said[0])


def test_an_answer_out_of_scale_is_warned_of_by_what_was_released():
    """The noisy answer, the declaration and the number of rows decide, and nothing else."""
    ages, query = np.full(120, 40.0), lambda x: np.clip(x, 0, 100).sum()
    with pytest.warns(SensitivityWarning, match="120 rows that move it by at most 2 add up to 240"):
        Filter(ages, Budget(1.0)).release(Laplace(9.0, sensitivity=2.0), query)
    with warnings.catch_warnings(action="error"):
        Filter(ages, Budget(1.0)).release(Laplace(900.0, sensitivity=100.0), query)
        # an answer of 240 and noise of deviation 130
        Filter(ages, Budget(1.0)).release(Laplace(90.0, sensitivity=2.0), lambda x: 2 * len(x))
        Filter(ages, Budget(1.0)).release(Laplace(9.0), lambda x: x[:3], shape=3)


def test_what_is_no_plain_sum_is_not_warned_of():
    with warnings.catch_warnings(action="error"):
        for query in (lambda x: np.clip(x, 0, 1).sum(), lambda x: (x > 50).sum(), np.max, len):
            gate().release(Laplace(9.0), query)
        gate().release(Laplace(900.0, sensitivity=100.0), np.sum)
        Filter(AGES > 50, Budget(1.0)).release(Laplace(9.0), np.sum)
        Filter(AGES > 50, Budget(1.0)).release(DiscreteLaplace(9.0), np.sum)
        Filter(AGES, Budget(1.0), rng=0).release(Laplace(9.0), np.sum)
        calibrate(Gaussian, epsilon=1.0, delta=0.01)
        Odometer(AGES, rng=0).release(Laplace(9.0), np.sum)


def test_arrays_given_for_something_else_are_not_shown():
    for wrong in (
        lambda: Filter(AGES, AGES),
        lambda: Ledger(AGES, AGES),
        lambda: Ledger(AGES, list(AGES)),
        lambda: Laplace(AGES),
        lambda: Budget(AGES),
        lambda: Tight().epsilon(AGES, 1e-6),
        lambda: gate().release(AGES, Laplace(9.0)),
        lambda: Filter(AGES, budgett=AGES),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            wrong()
        assert SECRET not in str(caught.value)


def test_the_share_of_clipped_records_has_noise_and_is_charged():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, 3)), rng.normal(size=2000)
    budget, model = Budget(1.0), lasso()
    truth = (np.abs(np.c_[x, y]) > 1).any(axis=1).mean()
    # noise of deviation 2.7 in 2000: beyond 40 of it once in 10^9
    assert clipped_share(model, x, y, epsilon=0.5, ledger=budget) == pytest.approx(truth, abs=0.02)
    shares = {clipped_share(model, x, y, epsilon=0.02) for _ in range(4)}
    assert len(shares) > 1
    assert clipped_share(PrivateMean(epsilon=1.0), x * 9, epsilon=1.0) > 0.9
    with pytest.raises(RuntimeError, match=r"needs epsilon 0\.6"):
        clipped_share(model, x, y, epsilon=0.6, ledger=budget)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="y_bound"):
        clipped_share(model, x, epsilon=0.5)


def test_the_share_of_long_rows_counts_the_constant_where_the_fit_does():
    rows = np.full((50, 3), 0.5)  # of length 0.87, and 1.32 with the constant
    budget = {"epsilon": 1.0, "delta": 1e-6}
    bounded = partial(PrivateLogisticRegression, **budget, classes=[0, 1], row_bound=1.0)
    shares = [
        clipped_share(model, rows, epsilon=50.0)
        for model in (
            bounded(), bounded(fit_intercept=False), SparseERM(**budget, sparsity=1, classes=[0, 1])
        )
    ]  # fmt: skip
    assert shares == [1.0, 0.0, 0.0]
    rows[0] = 1e200  # no warning tells of it
    assert clipped_share(bounded(fit_intercept=False), rows, epsilon=50.0) == 1 / 50


@pytest.mark.parametrize(
    "call",
    [
        lambda: Filter(AGES, 1.0),
        lambda: Filter(AGES, budgett=AGES),
        lambda: lasso(x_bound=AGES).fit(X, Y),
        lambda: PrivateLasso(AGES, alpha=AGES),
    ],
)
def test_what_teaches_keeps_no_argument_in_a_traceback(call):
    """Tools that show local names in tracebacks would show data, or a passphrase."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    frames = [frame for frame, _ in traceback.walk_tb(caught.tb)]
    teaching = [one for one in frames if one.f_code.co_filename.endswith("dp_attest/calls.py")]
    assert not any({"values", "named"} & set(one.f_locals) for one in teaching)
