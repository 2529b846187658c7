"""What printed constants really give: golden values of methods.md 3.2, 9 (E1, E1c) and 11."""

import pytest

from accountant import RDP, ZCDP
from audits.published import printed_label_noise, public_label_noise


@pytest.mark.parametrize(
    ("sparsity", "noise_bound", "true"), [(1, 0.05, 11.8), (5, 0.05, 36.2236), (10, 0.05, 61.6)]
)
def test_printed_label_noise_costs_many_times_the_claim(sparsity, noise_bound, true):
    found = printed_label_noise(1.0, 1e-3, sparsity, noise_bound)
    assert found.true_epsilon == pytest.approx(true, rel=1e-3 if sparsity == 5 else 5e-3)
    assert not found.holds


def test_the_golden_row():
    plan = printed_label_noise(1.0, 1e-3, 5, 0.05).plan
    assert plan.scale == pytest.approx(0.755296, rel=1e-6)
    assert plan.sensitivity == pytest.approx(4.572136, rel=1e-6)
    assert plan.loss.mu == pytest.approx(6.053437, rel=1e-6)
    assert plan.loss.rho == pytest.approx(18.32205, rel=1e-6)
    assert ZCDP().epsilon(plan, 1e-3) == pytest.approx(39.062, rel=1e-4)
    assert RDP().epsilon(plan, 1e-3) == pytest.approx(39.095, rel=1e-3)


def test_it_is_honest_where_the_noise_is_greater_than_the_signal():
    assert printed_label_noise(1.0, 1e-3, 5, 1.0).true_epsilon == pytest.approx(1.12, rel=5e-3)
    assert printed_label_noise(1.0, 1e-3, 4, 3.0).holds


def test_the_code_has_half_the_printed_noise():
    assert public_label_noise(1.0, 1e-3, 10, 0.05).true_epsilon == pytest.approx(202, rel=5e-3)
