"""Sampling without replacement is its formula."""

import math

import numpy as np
import pytest

from accountant import RDP, GaussianLoss, PairLoss, PureLoss, SampledWithoutReplacement, Tight


def test_sampling_without_replacement_is_its_formula():
    # a bit in a sample of m of n, released exactly but for a flip: enumerate who is in the sample
    part, m, n = PureLoss(1.0), 2, 10
    node = SampledWithoutReplacement(part, m, n)
    for epsilon in (0.0, 0.1, 0.2):
        inner = math.log1p(math.expm1(epsilon) / (m / n))
        assert node.profile(epsilon) == pytest.approx(m / n * float(part.profile(inner)))
    assert node.pure == pytest.approx(math.log1p(0.2 * math.expm1(1.0)))


def test_the_lower_end_is_that_of_data_whose_other_records_are_alike():
    # five samples of 3 of 10 bits, one of which is 1: the sample's 1 or 0 through a response
    keep, share, steps = math.e / (1 + math.e), 0.3, 5
    p1, q1 = share * keep + (1 - share) * (1 - keep), 1 - keep
    law = [(math.comb(steps, k), k, steps - k) for k in range(steps + 1)]

    def delta(epsilon, p, q):
        return math.fsum(
            max(c * (p**k * (1 - p) ** n - math.exp(epsilon) * q**k * (1 - q) ** n), 0.0)
            for c, k, n in law
        )

    response = PairLoss((keep, 1 - keep), (1 - keep, keep))
    found = Tight().certify(steps * SampledWithoutReplacement(response, 3, 10), 1e-3)
    truth = found.lower * (1 + 1e-6)
    assert (
        0
        < found.lower
        < found.upper
        <= RDP().epsilon(steps * SampledWithoutReplacement(response, 3, 10), 1e-3)
    )
    assert delta(truth, p1, q1) <= 1e-3 <= delta(found.lower * (1 - 1e-6), p1, q1)


@pytest.mark.parametrize("sample", [1, 3, 9])
def test_the_dearer_direction_of_a_part_counts_at_each_epsilon(sample):
    part, share = PairLoss((0.05, 0.35, 0.6), (0.3, 0.4, 0.3)), sample / 10
    node = SampledWithoutReplacement(part, sample, 10)
    laws = [(np.array(one), np.array(other)) for one, other in ((part.p, part.q), (part.q, part.p))]
    for epsilon in (0.0, 0.1, 0.3, 0.7):
        mixed = [(share * p + (1 - share) * q, q) for p, q in laws]
        truth = max(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for p, q in mixed)
        assert float(node.profile(epsilon)) == pytest.approx(truth, rel=1e-9, abs=1e-15)
    assert node.numerics.is_upper_envelope
    assert node.cell_masses(np.linspace(-2.0, 2.0, 9)) is None  # of no single pair
    for delta in (1e-3, 0.05):
        assert float(node.profile(Tight().epsilon(node, delta))) <= delta * (1 + 1e-9)
    # Either data set may be the one with the record.
    orders = np.array([1.5, 3.0, 20.0])
    for p, q in mixed:
        moments = [math.fsum(p * (p / q) ** (order - 1)) for order in orders]
        assert np.all(node.renyi(orders) >= np.log(moments) / (orders - 1) * (1 - 1e-9))
        moments = [math.fsum(q * (q / p) ** (order - 1)) for order in orders]
        assert np.all(node.renyi(orders) >= np.log(moments) / (orders - 1) * (1 - 1e-9))


def test_a_sample_of_all_records_is_the_part():
    plan = 3 * SampledWithoutReplacement(GaussianLoss(1.0), 7, 7)
    found, part = Tight().certify(plan, 1e-6), Tight().epsilon(3 * GaussianLoss(1.0), 1e-6)
    assert found.lower <= part <= found.upper <= part * (1 + 1e-4)
    assert found.lower >= part * (1 - 1e-6)
