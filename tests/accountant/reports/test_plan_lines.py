"""Lines of a plan: equal parts once, noise scaled where there is a scale."""

from accountant import GaussianLoss, LaplaceLoss, PoissonSampled, Repeat, Sequential
from accountant.reports.plan_lines import PlanLine, lines_of, plan_of, scale_noise
from mechanisms import Gaussian, Laplace, RandomizedResponse


def test_noise_is_scaled_where_there_is_a_scale():
    assert scale_noise(Laplace(scale=2.0), 3.0) == Laplace(scale=6.0)
    assert scale_noise(GaussianLoss(0.5), 2.0) == GaussianLoss(0.25)
    assert scale_noise(LaplaceLoss(0.5), 2.0) == LaplaceLoss(0.25)
    sampled = PoissonSampled(Gaussian(scale=2.0), 0.1)
    assert scale_noise(sampled, 2.0) == PoissonSampled(Gaussian(scale=4.0), 0.1)
    # a probability is no scale
    flips = RandomizedResponse(k=2, keep=0.7)
    assert scale_noise(flips, 2.0) is flips


def test_lines_are_the_plan_with_equal_parts_once():
    a, b = Laplace(scale=2.0), Gaussian(scale=3.0)
    lines = lines_of(Sequential([Repeat(a, 3), b, a]))
    assert lines == [PlanLine(a, 4), PlanLine(b, 1)]
    assert dict(plan_of(lines).losses()) == dict((4 * a + b).losses())
    # half of one release is one release
    assert dict(plan_of(lines, count_factor=0.5).losses()) == dict((2 * a + b).losses())
