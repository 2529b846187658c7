"""One call for every bound, and the users an error needs."""

import inspect
from types import SimpleNamespace

import pytest

import audits.minimax
from accountant.errors import ParameterError
from audits.minimax import PROBLEMS, LowerBound, lower_bound, problems, sample_size
from audits.minimax.problems import bound_function

SETTINGS = {
    "sparse_regression": {"p": 20, "epsilon": 0.5},
    "sparse_regression_zcdp": {"p": 20, "rho": 0.1},
    "sparse_regression_rdp": {"p": 20, "epsilon": 0.5},
    "label_regression": {"p": 100, "s": 5, "epsilon": 1.0, "noise_bound": 1.0},
    "label_optimisation": {"k": 10, "epsilon": 1.0},
    "central_regression": {"p": 100, "s": 2, "epsilon": 0.5, "delta": 1e-6},
    "private_lasso": {"p": 1000, "epsilon": 1.0},
    "private_mean": {"dimension": 10, "epsilon": 1.0},
    "private_histogram": {"k": 10, "epsilon": 1.0},
    "private_selection": {"k": 10, "epsilon": 1.0},
}
every_problem = pytest.mark.parametrize("problem", sorted(PROBLEMS))


def test_every_problem_has_a_setting():
    assert set(SETTINGS) == set(PROBLEMS)


@every_problem
def test_every_problem_is_bounded(problem):
    bound = lower_bound(problem, n=500, **SETTINGS[problem])
    assert isinstance(bound, LowerBound)
    assert bound.value > 0
    assert bound.statement
    assert bound.valid_for
    assert bound.optimised_over
    if bound.published is not None and problem != "central_regression":
        assert bound.published <= bound.value
    if bound.construction is not None:
        assert bound.construction.points >= 2
        assert bound.construction.separation > 0
    assert "n" in inspect.signature(bound_function(problem)).parameters


@every_problem
def test_a_bound_falls_with_users_and_epsilon(problem):
    setting = SETTINGS[problem]
    privacy = "rho" if "rho" in setting else "epsilon"
    values = [
        lower_bound(problem, n=1000, **{**setting, privacy: level}).value
        for level in (0.1, 0.5, 2.0)
    ]
    assert values == sorted(values, reverse=True)


QUICK = sorted(set(PROBLEMS) - {"private_selection", "central_regression", "private_lasso"})


@pytest.mark.parametrize("problem", QUICK)
def test_sample_size_inverts_the_bound(problem):
    setting = SETTINGS[problem]
    error = lower_bound(problem, n=700, **setting).value * 0.999
    n = sample_size(problem, error, **setting)
    assert lower_bound(problem, n=n, **setting).value <= error
    assert lower_bound(problem, n=n - 1, **setting).value > error
    assert 690 <= n <= 710


# The bound of 1, 2, 4, ... users, and the users for an error of 1/2; None where it is refused.
SHAPES = [
    ((4.0, 2.0, 1.0, 0.5, 0.25), 8),
    ((4.0, 4.0, 1.0, 0.5, 0.5), 8),
    ((4.0, 4.0 * (1 - 5e-7), 1.0, 0.5, 0.25), 8),
    ((4.0, 4.0 * (1 + 5e-7), 1.0, 0.5, 0.25), 8),  # a rise that a search for the bound may cause
    ((4.0, 4.0 * (1 + 1e-5), 1.0, 0.5, 0.25), None),
    ((4.0, 2.0, 1.0, 0.5, 0.6), None),
    ((4.0, 2.0, 1.0, 0.5, 0.25, 9.0), 8),
    ((0.5, 0.4), 1),
    ((0.5, 0.6), None),
]


@pytest.mark.parametrize(("heights", "users"), SHAPES)
def test_sample_size_refuses_a_bound_that_rises_as_n_doubles(heights, users, monkeypatch):
    def bound(problem, n):
        assert problem == "a problem"
        return SimpleNamespace(value=heights[n.bit_length() - 1])

    monkeypatch.setattr(problems, "lower_bound", bound)
    if users is None:
        with pytest.raises(ParameterError, match="one whose bound falls as n doubles"):
            sample_size("a problem", 0.5)
    else:
        assert sample_size("a problem", 0.5) == users


def test_sample_size_of_a_lasso_and_at_the_ends():
    n = sample_size("private_lasso", 0.01, 1.0, p=100)
    assert lower_bound("private_lasso", n=n, p=100, epsilon=1.0).value <= 0.01
    assert lower_bound("private_lasso", n=n - 1, p=100, epsilon=1.0).value > 0.01
    assert sample_size("sparse_regression", 10.0, 0.5, p=20) == 1
    # the error of a selection is a number of votes, which more users do not make smaller
    with pytest.raises(ParameterError, match="2\\^50"):
        sample_size("private_selection", 0.1, 1.0, k=10)


def test_wrong_calls_say_what_is_right():
    with pytest.raises(ParameterError, match="'private_mean'"):
        lower_bound("regression", n=5)
    with pytest.raises(ParameterError, match="unexpected keyword argument 'q'"):
        lower_bound("sparse_regression", n=5, p=5, epsilon=1.0, q=2)
    with pytest.raises(ParameterError, match="missing a required argument: 'k'"):
        lower_bound("label_optimisation", n=5, epsilon=1.0)
    with pytest.raises(ParameterError, match="left out"):
        sample_size("sparse_regression", 0.1, 1.0, n=5, p=5)
    for error in (0.0, -1.0, float("nan")):
        with pytest.raises(ParameterError, match="error"):
            sample_size("sparse_regression", error, 1.0, p=5)


def test_every_name_is_exported():
    for name in audits.minimax.__all__:
        assert getattr(audits.minimax, name) is not None
    with pytest.raises(AttributeError):
        audits.minimax.nothing  # noqa: B018
