"""What a new user gets wrong is answered with the remedy."""

import warnings

import numpy as np
import pytest

from accountant import (
    Book,
    Budget,
    Filter,
    LargeDeltaWarning,
    ParameterError,
    calibrate,
    compare,
)
from accountant.__main__ import main
from mechanisms import Gaussian, Laplace, Mechanism, registry


@pytest.mark.parametrize("cls", [one for one in registry() if "epsilon" not in one.__slots__])
def test_a_mechanism_given_an_epsilon_names_calibrate(cls):
    with pytest.raises(ParameterError, match=rf"calibrate\({cls.__name__}, epsilon=1.5\)"):
        cls(epsilon=1.5)


def test_the_named_call_leaves_out_what_it_finds():
    with pytest.raises(ParameterError, match=r"calibrate\(Laplace, sensitivity=2, epsilon=1\)"):
        Laplace(scale=3.0, sensitivity=2, epsilon=1)
    assert issubclass(Laplace, Mechanism)
    assert calibrate(Laplace, sensitivity=2, epsilon=1).scale == pytest.approx(2.0, rel=1e-5)


def test_noise_without_a_pure_guarantee_asks_for_delta():
    with pytest.raises(ParameterError, match="delta must be above 0: Gaussian noise"):
        calibrate(Gaussian, epsilon=1)
    with pytest.raises(ParameterError, match="delta must be above 0: this plan"):
        calibrate(lambda scale: 3 * Gaussian(scale), epsilon=1)


def test_swapped_budgets_are_noticed():
    with pytest.raises(ParameterError, match=r"Budget\(1, 1e-06\) if swapped"):
        Budget(1e-6, 1)
    for epsilon, delta in ((5.0, 1.0), (0.5, True), (0.5, "a"), (0.5, np.nan), (0.5, np.inf)):
        with pytest.raises(ParameterError) as caught:
            Budget(epsilon, delta)
        assert "swapped" not in str(caught.value)


def test_compare_asks_for_delta_or_takes_the_budgets(tmp_path, capsys):
    with pytest.raises(ParameterError, match=r"compare\(plan, delta=1e-6\)"):
        compare(10 * Laplace(2.0))
    plan = tmp_path / "plan.toml"
    release = '[[release]]\nkind = "Laplace"\nscale = 20.0\n'
    plan.write_text(release)
    assert main(["compare", str(plan)]) == 2
    assert "give --delta or --epsilon" in capsys.readouterr().err
    plan.write_text(f"[budget]\nepsilon = 1.0\ndelta = 1e-7\n{release}")
    assert main(["compare", str(plan)]) == 0
    assert "epsilon at delta 1e-07" in capsys.readouterr().out


def test_a_delta_above_one_over_n_is_warned_about(tmp_path):
    ages = np.arange(50.0)
    with pytest.warns(LargeDeltaWarning, match=r"above 1/n = 0.02 for 50 users.*take 2e-03"):
        Filter(ages, Budget(1.0, 0.03))
    with Book.create(f"sqlite:///{tmp_path}/book.db") as book:
        book.dataset("staff", Budget(1.0, 0.03), users=50)
        with pytest.warns(LargeDeltaWarning):
            book.ledger("staff", ages)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Filter(ages, Budget(1.0, 0.02))
        Filter(ages, Budget(1.0, 0.03), rng=1)  # a test
