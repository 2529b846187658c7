"""Poisson samples of which one record is exchanged: published values, cases, refusals."""

import math

import numpy as np
import pytest

from accountant import (
    PLD,
    RDP,
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    ParameterError,
    PoissonSampled,
    PureLoss,
    Stated,
    Tight,
    calibrate,
    from_dp_event,
    from_json,
    to_dp_event,
    to_json,
)
from accountant.formats.plan_toml import file_from_toml
from mechanisms import Gaussian


@pytest.mark.parametrize(
    ("noise", "rate", "value"),
    [(2.0, 0.8, 0.0580866565), (1.5, 0.8, 0.1371126090), (2 / 3, 0.7, 0.4013057527)],
)
def test_published_values(noise, rate, value):
    # dp-accounting's privacy_loss_mechanism_test, sensitivity 1
    plan = PoissonSampled(GaussianLoss(1 / noise), rate, "replace-one")
    assert float(plan.profile(1.0)) == pytest.approx(value, abs=1e-9)
    assert float(plan.reversed.profile(1.0)) == pytest.approx(value, abs=1e-9)


def test_at_rate_one_it_is_the_group_of_two():
    for epsilon in (0.0, 1.0, 4.0):
        gaussian = PoissonSampled(GaussianLoss(0.7), 1.0, "replace-one")
        assert float(gaussian.profile(epsilon)) == pytest.approx(
            float(GaussianLoss(1.4).profile(epsilon)), rel=1e-9
        )
        response = PoissonSampled(PureLoss(0.7), 1.0, "replace-one")
        assert response.pure == pytest.approx(1.4)
    assert list(PoissonSampled(GaussianLoss(0.7), 0.0, "replace-one").losses()) == []


def test_compositions_are_exact():
    plan = 300 * PoissonSampled(GaussianLoss(0.5), 0.02, "replace-one")
    found = Tight().certify(plan, 1e-6)
    assert found.width <= 1e-8 * found.upper
    low, high = PLD(interval=5e-3).bracket(plan, 1e-6)
    assert low <= found.upper <= high
    assert found.upper <= RDP().epsilon(plan, 1e-6)
    added = Tight().epsilon(300 * PoissonSampled(GaussianLoss(0.5), 0.02), 1e-6)
    assert added < found.upper < 3 * added
    pair = 30 * PoissonSampled(PairLoss((0.6, 0.3, 0.1), (0.2, 0.3, 0.5)), 0.1, "replace-one")
    exact = Tight().certify(pair, 1e-6)
    assert exact.width <= 1e-8 * exact.upper


def test_laplace_noise_is_bounded_from_above_only():
    # exact by hand: .7 Laplace(0) + .3 Laplace(1) against .7 Laplace(0) + .3 Laplace(-1)
    plan = PoissonSampled(LaplaceLoss(1.0), 0.3, "replace-one")
    x = np.linspace(-30, 30, 600_001)
    p, q = (0.7 * np.exp(-abs(x)) / 2 + 0.3 * np.exp(-abs(x - m)) / 2 for m in (1, -1))
    for epsilon in (0.0, 0.3, 0.5):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) * 1e-4
        assert truth - 1e-8 <= float(plan.profile(epsilon)) <= truth + 1e-5
    assert Tight().bracket(3 * plan, 1e-6)[0] == 0.0


@pytest.mark.parametrize("rate", [0.1, 0.6, 1.0])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
        ((0.6, 0.4), (0.1, 0.9)),
        ((0.05, 0.15, 0.35, 0.45), (0.3, 0.3, 0.33, 0.07)),
        ((0.1, 0.5, 0.4, 0.0), (0.0, 0.2, 0.5, 0.3)),  # each law lacks an outcome of the other
        ((0.3, 0.5, 0.2), (0.0, 0.4, 0.6)),
    ],
)
def test_the_exchange_of_a_finite_part_is_two_rearrangements(p, q, rate):
    # Without either record the outcome is uniform on [0, 1]; with one the ratio P / Q falls along
    # it, with the other it grows.  Cells of a ten thousandth lie within pieces of these laws.
    plan, cells = PoissonSampled(PairLoss(p, q), rate, "replace-one"), 10_000
    ratios = sorted(((b and a / b, b) for a, b in zip(p, q, strict=True)), reverse=True)
    falling = np.repeat([r for r, b in ratios if b], [round(b * cells) for _, b in ratios if b])
    shown = rate * sum(a for a, b in zip(p, q, strict=True) if b == 0)
    assert plan.infinity == pytest.approx(
        shown + (rate * falling[falling[::-1] == 0].sum() / cells if rate == 1 else 0.0), abs=1e-12
    )
    one, other = ((1 - rate + rate * ratio) / cells for ratio in (falling, falling[::-1]))
    for epsilon in (0.0, 0.05, 0.4, 1.0, 2.0, 8.0):
        truth = shown + np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
        for way in (plan, plan.reversed):
            assert way.profile(epsilon) == pytest.approx(truth, rel=1e-11, abs=1e-14)
    finite = (one > 0) & (other > 0)
    losses, mass = plan.exchanged.loss_pmf
    assert math.fsum(mass) + plan.infinity == pytest.approx(1.0, rel=1e-12)
    # the other law has the mass of each loss, and the losses of the opposite sign
    assert math.fsum(mass * np.exp(-losses)) == pytest.approx(math.fsum(mass), rel=1e-12)
    if rate < 1:
        moment = math.fsum(one[finite] ** 2 / other[finite])
        assert math.log(math.fsum(mass * np.exp(losses))) == pytest.approx(
            math.log(moment), rel=1e-10
        )
        assert plan.max_loss == pytest.approx(np.log(one[finite] / other[finite]).max(), rel=1e-12)
    for part, is_bound in ((PairLoss(p, q), False), (LaplaceLoss(0.5), True)):
        ((loss, _),) = PoissonSampled(part, 0.3, "replace-one").losses()
        assert loss.numerics.is_numerical == is_bound


def test_outcomes_that_show_a_record():
    plan = PoissonSampled(ApproxLoss(0.0, 0.1), 0.5, "replace-one")
    # a record has a sure sign of mass .1 and lacks another, which is seen without it
    assert plan.infinity == pytest.approx(0.05)
    assert float(plan.profile(0.0)) == pytest.approx(0.1)


def test_a_part_of_two_records_says_less():
    part = Stated(GaussianLoss(1.0), "replace-one")
    plan = PoissonSampled(part, 0.25, "replace-one")
    e = np.array([0.0, 1.0, 3.0])
    assert np.allclose(plan.profile(e), GaussianLoss(1.0).profile(e) / 4, rtol=1e-12)
    found = Tight(width=1e-8).certify(20 * plan, 1e-6)
    assert found.width <= 1e-7 * found.upper
    # no law without the records makes more: pointwise (q (P - c Q) - (1 - q) (c - 1) R)_+
    rng = np.random.default_rng(3)
    for two in (PairLoss((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)), PairLoss((0.6, 0.4), (0.1, 0.9))):
        sampled = PoissonSampled(Stated(two, "replace-one"), 0.25, "replace-one")
        for _ in range(50):
            r = rng.dirichlet(np.ones(len(two.p)))
            p, q = (0.75 * r + 0.25 * np.array(law) for law in (two.p, two.q))
            for epsilon in (0.0, 0.2, 0.9):
                truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                assert truth <= float(sampled.profile(epsilon)) + 1e-12
                truth = float(np.maximum(q - math.exp(epsilon) * p, 0).sum())
                assert truth <= float(sampled.reversed.profile(epsilon)) + 1e-12
        for way, loss in ((sampled, two), (sampled.reversed, two.reversed)):
            assert np.allclose(way.profile(e), loss.profile(e) / 4, rtol=1e-12)
            ((same, _),) = way.losses()
            assert np.allclose(same.profile(e), loss.profile(e) / 4, rtol=1e-12)
    whole = PoissonSampled(part, 1.0, "replace-one")
    assert [one for one, _ in whole.losses()] == [GaussianLoss(1.0)]


def test_files_events_and_other_accountants():
    plan = 50 * PoissonSampled(GaussianLoss(0.5), 0.05, "replace-one")
    assert from_json(to_json(plan)) == plan
    assert from_dp_event(to_dp_event(plan), "replace-one") == plan
    text = (
        '[[release]]\nkind = "PoissonSampled"\nrate = 0.05\ncount = 50\n'
        'relation = "replace-one"\npart = { kind = "GaussianLoss", mu = 0.5 }\n'
    )
    assert dict(file_from_toml(text).plan.losses()) == dict(plan.losses())
    sampled = 50 * PoissonSampled(Gaussian(1.0), 0.05, "replace-one")
    scaled = calibrate(sampled, epsilon=1.0, delta=1e-5)
    assert 0.99 <= Tight().epsilon(scaled, 1e-5) <= 1.0
    # stored plans do not name the relation at its default
    assert "relation" not in to_json(PoissonSampled(GaussianLoss(0.5), 0.05))


def test_wrong_neighbours_are_refused():
    with pytest.raises(ParameterError, match="one of 'add-remove', 'zero-out', 'replace-one'"):
        PoissonSampled(GaussianLoss(1.0), 0.1, "local-replace")
    with pytest.raises(ParameterError, match="part must be stated for add-remove"):
        PoissonSampled(Stated(GaussianLoss(1.0), "local-replace"), 0.1, "replace-one")
    with pytest.raises(ParameterError, match="do not mix"):
        PoissonSampled(GaussianLoss(1.0), 0.1, "replace-one") + PoissonSampled(PureLoss(1.0), 0.1)
    laplace = PoissonSampled(LaplaceLoss(0.5), 0.25, "replace-one")
    assert from_dp_event(to_dp_event(laplace), "replace-one") == laplace
