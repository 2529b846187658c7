"""Laws of noise on coarse grids and on the line, against sums and events in floats.

A mechanism's grid is so fine that its law is that of the line in every digit that is compared.
Here a step is up to half the scale.
"""

import math

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.verifier.claimed_laws import exact_parameters, fraction
from accountant.verifier.claimed_noise import NOISE, grid_of

EPSILONS = (0.0, 0.3, 1.0, 2.5)
FAR = 400  # points of a grid on either side: noise beyond them has less mass than a float


def parameters_of(kind, seed):
    """Parameters of noise, at random: a reach ends inside a step, and one value is not 0."""
    rng = np.random.default_rng(seed)
    scale = float(2.0 ** rng.integers(-1, 2))
    numbers = {
        "drawn_scale": scale, "step": 0.0, "sensitivity": scale * int(rng.integers(1, 24)) / 8,
        "dimension": None, "monotone": bool(seed % 2),
    }  # fmt: skip
    if seed % 3:
        numbers["step"] = scale / (8 if kind == "Gaussian" else int(2 ** rng.integers(1, 4)))
        numbers["dimension"] = int(rng.integers(1, 4))
        numbers["reach_steps"] = int(rng.integers(1, 9))
    return numbers | {"reach": int(rng.integers(2, 9)) / 4, "values": [0.25, -scale]}


def law_of(kind, numbers):
    parameters = exact_parameters(numbers)
    return NOISE[kind](parameters, grid_of(parameters))


def line_law(kind, numbers):
    """The distribution function of noise of scale 1 on the line, and the end of the noise."""
    if kind != "TruncatedLaplace":
        return (stats.norm if kind == "Gaussian" else stats.laplace).cdf, math.inf
    step = numbers["step"] / numbers["drawn_scale"]
    reach = numbers["reach_steps"] * step if step else numbers["reach"]
    ends = stats.laplace.cdf([-reach, reach])
    return lambda x: (stats.laplace.cdf(np.clip(x, -reach, reach)) - ends[0]) / np.ptp(ends), reach


def masses(kind, numbers):
    """The masses of noise on the points k - FAR of its grid, which is in scales."""
    k = np.arange(-FAR, FAR + 1)
    step = (numbers["step"] or 1.0) / numbers["drawn_scale"]
    if kind == "TruncatedLaplace":  # a point is a cell of the line
        cdf, _ = line_law(kind, numbers)
        return cdf((k + 1) * step) - cdf(k * step)
    energy = (k * step) ** 2 / 2 if "Gaussian" in kind else np.abs(k * step)
    return np.exp(-energy) / np.exp(-energy).sum()


def delta_on_grid(law, steps, epsilon):
    """Delta of noise on a grid, at two values that are some steps apart."""
    first, second = (np.pad(law, sides) for sides in ((steps, 0), (0, steps)))
    return np.maximum(first - math.exp(epsilon) * second, 0).sum()


def delta_on_line(cdf, reach, distance, epsilon):
    """The greatest gain of an event "at most t"."""
    kinks = [distance - reach, reach, (distance - epsilon) / 2]
    t = np.concatenate([np.linspace(-9, 9, 4001), np.clip(kinks, -99, 99)])
    return max(0.0, np.max(cdf(t) - math.exp(epsilon) * cdf(t - distance)))


@pytest.mark.parametrize("seed", range(0, 24, 3))
@pytest.mark.parametrize("kind", ["Laplace", "TruncatedLaplace", "Gaussian"])
def test_delta_on_the_line_is_that_of_the_best_event(kind, seed):
    numbers = parameters_of(kind, seed)
    law, (cdf, reach) = law_of(kind, numbers), line_law(kind, numbers)
    distance = numbers["sensitivity"] / numbers["drawn_scale"]
    for epsilon in EPSILONS:
        truth = delta_on_line(cdf, reach, distance, epsilon)
        assert [float(end) for end in law.delta(fraction(epsilon))] == pytest.approx(
            2 * [truth], abs=1e-5
        )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["DiscreteLaplace", "DiscreteGaussian"])
def test_delta_on_the_integers_is_their_sum(kind, seed):
    numbers = parameters_of(kind, seed) | {"step": 0.0, "sensitivity": 1.0 + seed % 5}
    law = law_of(kind, numbers)
    for epsilon in EPSILONS:
        truth = delta_on_grid(masses(kind, numbers), 1 + seed % 5, epsilon)
        assert [float(end) for end in law.delta(fraction(epsilon))] == pytest.approx(
            2 * [truth], abs=1e-12
        )


@pytest.mark.parametrize("seed", [seed for seed in range(36) if seed % 3])
@pytest.mark.parametrize("kind", ["Laplace", "TruncatedLaplace", "Gaussian"])
def test_delta_on_a_grid_is_between_its_ends(kind, seed):
    numbers = parameters_of(kind, seed)
    law, noise = law_of(kind, numbers), masses(kind, numbers)
    sensitivity, step = numbers["sensitivity"], numbers["step"]
    # rounding moves each coordinate of two neighbours apart by up to a step, or together
    moved = numbers["dimension"] ** (0.5 if kind == "Gaussian" else 1)
    least, greatest = math.floor(sensitivity / step), sensitivity / step + moved
    for epsilon in EPSILONS:
        low, high = (float(end) for end in law.delta(fraction(epsilon)))
        truths = [delta_on_grid(noise, steps, epsilon) for steps in (least, math.floor(greatest))]
        assert low <= truths[0] + 1e-12
        assert truths[1] <= high + 1e-12
        if kind == "Laplace":
            assert (low, high) == pytest.approx(truths, abs=1e-12)
            continue
        # the low end is an event whose t is up to a step off, and the high end is of the line
        in_scales = step / numbers["drawn_scale"]
        assert low >= truths[0] - (1 + math.exp(epsilon)) * in_scales
        wider = 1 / (1 - 4 * in_scales**2) if kind == "Gaussian" else 1.0
        line = delta_on_line(*line_law(kind, numbers), greatest * in_scales * wider, epsilon)
        assert high == pytest.approx(line, abs=1e-5)


def log_densities(kind, numbers, output):
    """The logarithms of the densities of an output at both values, which are rounded to a grid."""
    scale, step = numbers["drawn_scale"], numbers["step"]
    values = [step * math.floor(v / step + 0.5) if step else v for v in numbers["values"]]
    x = np.abs(output - np.array(values)) / scale
    if kind.startswith("Discrete"):
        energy = x * x / 2 if kind == "DiscreteGaussian" else x
        largest = masses(kind, numbers)[FAR]
        return (np.log(largest) - energy).tolist()
    if kind == "Gaussian":
        return stats.norm.logpdf(x, scale=1).tolist() - np.log(scale)
    _, reach = line_law(kind, numbers)
    missing = math.log1p(-math.exp(-reach))
    return np.where(x <= reach, -x - math.log(2 * scale) - missing, -np.inf).tolist()


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize(
    "kind", ["Laplace", "TruncatedLaplace", "Gaussian", "DiscreteLaplace", "DiscreteGaussian"]
)
def test_densities_are_those_of_the_formula(kind, seed):
    numbers = parameters_of(kind, seed)
    if kind.startswith("Discrete"):
        numbers |= {"step": 0.0, "sensitivity": 2.0, "values": [1, -1]}
    law, scale = law_of(kind, numbers), numbers["drawn_scale"]
    _, reach = line_law(kind, numbers)
    # one output is as far away as the noise reaches
    end = -round(numbers["values"][1]) + 0.0 if math.isinf(reach) else -scale - reach * scale
    for output in (end, *(k * scale / 4 + 0.0625 for k in range(-12, 13))):
        output = round(output) if kind.startswith("Discrete") else output
        logs = np.array(log_densities(kind, numbers, output))
        assert law.has_density(output, *logs)
        for side in ([1e-6, 0.0], [0.0, -1e-6]):
            wrong = np.where(np.isinf(logs) & (np.array(side) != 0), -700.0, logs + side)
            assert not law.has_density(output, *wrong)
            gone = np.where(np.array(side) != 0, np.where(np.isinf(logs), 0.0, -np.inf), logs)
            assert not law.has_density(output, *gone)


@pytest.mark.parametrize("dimension", ["not said", None, 1, 2, 3])
def test_a_grid_holds_the_distances_of_all_neighbours(dimension):
    rng = np.random.default_rng(4)
    coordinates = dimension if isinstance(dimension, int) else 1
    for _ in range(20):
        step, sensitivity = 0.25, float(rng.uniform(0.0, 1.5))
        numbers = {"drawn_scale": 0.5, "step": step, "sensitivity": sensitivity}
        if dimension != "not said":
            numbers["dimension"] = dimension
        _, least, greatest = map(float, grid_of(exact_parameters(numbers)))
        moves = sensitivity * rng.dirichlet(np.ones(coordinates), 2000)
        values = rng.uniform(0, step, moves.shape)
        steps = np.floor((values + moves) / step + 0.5) - np.floor(values / step + 0.5)
        distances = steps.sum(axis=1) * step / 0.5
        assert distances.max() <= greatest
        if coordinates == 1:
            assert distances.min() == least
            assert greatest < distances.max() + step / 0.5


def choice(kind, gap):
    """The chance of the first of two candidates whose score is above the other by a gap."""
    if kind == "PermuteAndFlip":  # the better one is chosen unless the other is first and stays
        better = 1 - math.exp(-abs(gap)) / 2
        return better if gap >= 0 else 1 - better
    return 1 / (1 + math.exp(-gap))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("kind", ["Exponential", "NoisyMax", "LazyExponential", "PermuteAndFlip"])
def test_choices_cost_the_worst_gap_of_two_scores(kind, monotone):
    for step, sensitivity in ((0.0, 0.5), (0.0, 2.0), (0.125, 0.75)):
        values = [[0.5, 0.125], [-0.25, 0.5]]
        numbers = {
            "drawn_scale": 0.5, "step": step, "sensitivity": sensitivity, "monotone": monotone,
            "values": values,
        }  # fmt: skip
        law = law_of(kind, numbers)
        chances = np.vectorize(lambda gap: choice(kind, gap))
        gaps = np.linspace(-12, 12, 1921)
        # The score of one candidate moves; where it may, that of the other does so the other way.
        for epsilon in EPSILONS:
            ends = [float(end) for end in law.delta(fraction(epsilon))]
            truths = []
            for score_moves in (sensitivity, sensitivity + step):
                moved = (1 if monotone else 2) * score_moves / 0.5
                gains = chances(gaps) - math.exp(epsilon) * chances(gaps - moved)
                truths.append(max(0.0, gains.max()))
            assert ends[0] <= truths[0] + 2e-5
            assert ends == pytest.approx(truths, abs=1e-2 if step else 2e-5)
        logs = [math.log(choice(kind, (a - b) / 0.5)) for a, b in values]
        other = [math.log(choice(kind, (b - a) / 0.5)) for a, b in values]
        assert law.has_density(0, *logs)
        assert law.has_density(1, *other)
        assert not law.has_density(0, *other)
        assert not law.has_density(1, *logs)


@pytest.mark.parametrize("step", [0.0, 2.0**-10])
@pytest.mark.parametrize("top", [1, 2, 7])
def test_delta_of_a_staircase_is_its_integral(step, top):
    fall, stair, stairs_of = 0.75, 0.5, 8
    numbers = {
        "drawn_scale": stair, "step": step, "sensitivity": stair, "scale": stair / fall,
        "width": 1 / fall, "top": top, "stair": stairs_of, "values": [0.0, stair],
    }  # fmt: skip
    law = law_of("Staircase", numbers)
    cells = 64  # of a stair; edges of stairs and of their parts are edges of cells
    x = (np.arange(-40 * cells, 41 * cells) + 0.5) / cells  # in stairs
    shares = [np.exp(-fall * np.floor(np.abs(x - v) + 1 - top / stairs_of)) for v in (0, 1)]
    first, second = (share / (shares[0].sum() * stair / cells) for share in shares)
    for epsilon in EPSILONS:
        truth = np.maximum(first - math.exp(epsilon) * second, 0).sum() * stair / cells
        ends = [float(end) for end in law.delta(fraction(epsilon))]
        assert ends == pytest.approx([truth, truth], abs=1e-9)
    for k in range(cells * 36, cells * 45, 5):
        logs = np.log([first[k], second[k]])
        assert law.has_density(x[k] * stair, *logs)
        assert not law.has_density(x[k] * stair, logs[0] + 1e-6, logs[1])
