"""One epoch of allocation by an integral, against expectations and the bounds that proofs state."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from flint import arb
from scipy.special import ndtr

from accountant.verifier.allocation import (
    EpochTransform,
    Line,
    delta_of_epoch,
    epoch_tails,
    read_line,
)
from accountant.verifier.document import Fields, NoProof, ProofError

MU, STEPS = 0.75, 2
LINE = {"a": 0.75, "h": 0.25, "y": 1.0, "step": 0.1875, "turn": 1.75, "nodes": 100}
POINTS = [0.5, 1.5, 2.0, 4.0]
# Noise of one step, in nodes so fine that sums are means to nine digits and more.
STEP = 0.01
X = np.arange(-12, 12, STEP)
MASSES = np.exp(-X * X / 2) * STEP / math.sqrt(2 * math.pi)
V = np.exp(MU * X - MU * MU / 2)


pytestmark = pytest.mark.usefixtures("at_128_bits")


def fields(**changes):
    """A line of an entry of a proof, of which some numbers are others."""
    numbers = LINE | changes
    return Fields({k: x.hex() if isinstance(x, float) else x for k, x in numbers.items()}, "a line")


def transform(points=(1.5,), mu=MU, steps=STEPS, length=None, **changes):
    line = read_line(fields(**changes))
    return EpochTransform(arb(mu) ** 2, steps, line, [arb(k) for k in points], length)


def put(k):
    """E (K - V)_+ of one log-normal V."""
    k = np.maximum(k, 1e-300)
    d = np.log(k) / MU
    return k * ndtr(d + MU / 2) - ndtr(d - MU / 2)


def below(k):
    """P(V < K)."""
    return ndtr(np.log(np.maximum(k, 1e-300)) / MU + MU / 2)


def of_two(function, k):
    """The mean of a function of K - V, which is that of two steps."""
    return float(MASSES @ (function(k - V) * (k > V)))


@functools.cache
def phi(s, turn=0.0):
    """E e^{-sV}, at a number with a positive real part; on the line Im x = -turn."""
    x = X[::4] - 1j * turn
    weights = np.exp(-x * x / 2) * 4 * STEP / math.sqrt(2 * math.pi)
    return complex(weights @ np.exp(-s * np.exp(MU * x - MU * MU / 2)))


def interval(ball):
    return float(ball.lower()), float(ball.upper())


def test_the_transform_is_the_mean_of_an_exponential():
    found = transform()
    s = LINE["a"] + 1j * LINE["h"] * np.arange(100)
    for j in (0, 1, 2, 40, 99):
        value = phi(s[j], 1.0) ** STEPS * np.exp(1.5 * s[j]) / s[j] / (2 if j == 0 else 1)
        assert complex(found.integrands[j]) == pytest.approx(value, rel=1e-9)
        assert complex(found.nodes[j]) == s[j]
    assert float(found.last_height()) == 99 * LINE["h"]
    assert float(found.period) == pytest.approx(2 * math.pi / LINE["h"])


@pytest.mark.parametrize(
    ("y", "step"),
    [(1.0, 0.5), (0.5, 1.0), (1.0, 0.0625), (0.75, 1.5), (1.0, 5.0), (1.0, 2**-5), (0.75, 0.025)],
)
def test_the_error_of_the_rule_is_that_of_a_strip_and_of_what_lies_beyond_18(y, step):
    strip = (1 + math.exp(2 * y * y)) / math.expm1(2 * math.pi * y / step)
    beyond = 2 * math.exp(y * y / 2) * ndtr(-18.0)
    found = transform(y=y, step=step, nodes=31)
    assert len(found.weights) == len(found.minus_v)
    outermost = [abs(complex(found.weights[end])) for end in (0, -1)]
    assert outermost[0] == pytest.approx(outermost[1], rel=1e-9, abs=0)
    assert len(found.weights) // 2 * step >= 18
    assert float(found.rule_error) == pytest.approx(strip + beyond, rel=1e-9, abs=0)
    for j in (0, 3, 30):  # and no number is farther from the truth
        s = LINE["a"] + 1j * LINE["h"] * j
        weights, minus_v = (np.array(list(map(complex, x))) for x in (found.weights, found.minus_v))
        rule = weights @ np.exp(minus_v * s)
        assert abs(rule - phi(s, y)) <= strip + beyond + 1e-12
    if strip > 1e-20:  # more than round-off: the error has any phase
        first = found.integrands[0]
        assert float(first.imag.rad()) == pytest.approx(float(first.real.rad()), rel=0.1, abs=0)
    widest = max(float(value.real.rad()) for value in found.integrands)
    assert widest >= strip * 0.9


def test_beyond_the_last_node_the_transform_is_bounded():
    for turn in (0.25, 1.75, 2.0):
        for nodes in (3, 20, 100):
            found = transform(turn=turn, nodes=nodes)
            height = LINE["h"] * (nodes - 1)
            angle = MU * turn
            real_s = LINE["a"] * math.cos(angle) + height * math.sin(angle)
            bound = min(1.0, math.exp(turn * turn / 2) * phi(real_s).real)
            assert float(found.size) == pytest.approx(bound, rel=1e-6)
            for v in height * np.linspace(1, 4, 6):
                assert abs(phi(LINE["a"] + 1j * v, 1.0)) <= float(found.size) + 1e-12


SIZES = [
    {}, {"nodes": 12}, {"a": 0.125}, {"a": 0.0625, "h": 0.5, "nodes": 60},
    {"turn": 1.0, "nodes": 60}, {"a": 1.5, "nodes": 90}, {"h": 1.25, "nodes": 40},
]  # fmt: skip


@pytest.mark.parametrize("changes", SIZES, ids=repr)
@pytest.mark.parametrize("steps", [2, 3])
def test_integrals_leave_out_what_is_stated_and_no_more(steps, changes):
    line = LINE | changes
    a, h, top = line["a"], line["h"], POINTS[-1]
    period, height, angle = 2 * math.pi / h, h * (line["nodes"] - 1), MU * line["turn"]
    found = transform(POINTS, steps=steps, length=2**9, **changes)
    x = math.exp(-a * period)
    factor = math.exp(a * top) * float(found.size) ** (steps - 1) / (math.pi * height)
    slope = math.exp(line["turn"] ** 2 / 2 + MU * MU) / math.sin(angle)
    cut = {"excesses": factor * float(found.size), "masses_below": factor * slope}
    aliases = {
        "excesses": top * x / (1 - x) + period * x / (1 - x) ** 2,
        "masses_below": x / (1 - x),
    }
    s = a + 1j * h * np.arange(line["nodes"])
    alone = transform([top], steps=steps, **changes)
    for name, power, mean in (("excesses", 2, put), ("masses_below", 1, below)):
        low, high = interval(getattr(alone, name)()[0])
        width = 2 * cut[name] + aliases[name]
        assert high - low == pytest.approx(width, rel=1e-4, abs=1e-12)
        terms = np.array([phi(one, 1.0) for one in s]) ** steps * np.exp(top * s) / s**power
        total = h / math.pi * (terms.real.sum() - terms[0].real / 2)
        assert high == pytest.approx(total + cut[name], rel=1e-6, abs=1e-9)
        if steps == 2:
            assert low - 1e-9 <= of_two(mean, top) <= high + 1e-9


def test_points_of_a_transform_are_those_of_each_alone():
    period = 2 * math.pi / LINE["h"]
    points = [0.5 + period * i / 512 for i in range(60)]
    many = transform(points, length=512)
    for name in ("excesses", "masses_below"):
        found = getattr(many, name)()
        for i in (0, 1, 7, 59):
            low, high = interval(found[i])
            truth = of_two(put if name == "excesses" else below, points[i])
            assert low - 1e-9 <= truth <= high + 1e-9
            assert high - low < 3e-2
    plain = transform(points[:1])
    assert float(plain.excesses()[0].mid()) == pytest.approx(of_two(put, 0.5), abs=1e-2)


RELEASE = ("allocation", Fraction(9, 16), 2)


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.75, -0.25])
def test_delta_of_an_epoch_is_that_of_its_ratio(epsilon):
    odds = math.exp(epsilon)
    for back in (False, True):
        at = below(2 * (1 / odds if back else odds) - V)
        with_record, without = MASSES * V @ at, MASSES @ at
        truth = without - odds * with_record if back else 1 - with_record - odds * (1 - without)
        low, high = interval(delta_of_epoch(RELEASE, back, fields(nodes=600), epsilon))
        assert low - 1e-9 <= truth <= high + 1e-9
        assert high - low < 5e-3


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_tails_of_an_epoch_are_those_of_its_ratio(rate):
    rule = fields(nodes=500, first=0.5, length=512, count=60)
    sampled = ("sampled allocation", *RELEASE[1:], Fraction(rate))
    tails = epoch_tails(RELEASE if rate == 1 else sampled, rule)
    assert len(tails) == 60
    for i in (0, 3, 20, 59):
        k = 0.5 + 2 * math.pi / LINE["h"] * i / 512
        # with the record one of two steps has the density V times that without it
        beyond = 1 - below(k - V)
        # and of a sample, with the rate
        with_record = (1 - rate) * MASSES @ beyond + rate * MASSES * V @ beyond
        for ball, truth in zip(tails[i][:2], (with_record, MASSES @ beyond), strict=True):
            low, high = interval(ball)
            assert low - 1e-9 <= truth <= high + 1e-9
            assert high - low < 2e-2
        assert float(tails[i][2]) == pytest.approx(math.log(1 - rate + rate * k / 2))


CONVERGING = [{}, {"y": 1.0471}, {"turn": 2.0943}, {"a": 2.0**-30}, {"h": 1.5}]
DIVERGING = [{"y": 1.0473}, {"turn": 2.0945}, {"a": 0.0}, {"h": 1.6}]


def test_a_line_is_taken_only_where_the_integral_converges():
    for changes in CONVERGING:
        assert transform(POINTS, length=512, **changes)
    for changes in DIVERGING:
        with pytest.raises(NoProof, match="nothing converges"):
            transform(POINTS, length=512, **changes)
    with pytest.raises(NoProof, match="nothing converges"):
        transform(steps=1)
    for length in (500, 511, 513):
        with pytest.raises(NoProof, match="slow"):
            transform(length=length)


LIMITS = {
    "a": (1e30, 1.1e30, -0.5), "h": (None, 1.1e30, -0.5), "y": (1e-3, 0.0009, 99.5, -1.0),
    "step": (99.0, 0.0009, 99.5), "turn": (1e-3, 0.0009, 99.5, -1.0), "nodes": (2, 1, 2**17 + 1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_numbers_of_a_line_are_in_their_ranges(name):
    taken, *refused = LIMITS[name]
    found = read_line(fields(**({} if taken is None else {name: taken})))
    expected = LINE | ({} if taken is None else {name: taken})
    assert [float(x) for x in found] == list(expected.values())
    assert isinstance(found, Line)
    for value in refused:
        with pytest.raises(ProofError):
            read_line(fields(**{name: value}))


POINTS_OF_A_RULE = {"first": 0.5, "length": 512, "count": 9}


@pytest.mark.parametrize("changes", [
    {"first": 0.0}, {"first": 1e13}, {"length": 64}, {"length": 2**19}, {"count": 0},
    {"count": 2**17 + 1}, {"more": 1},
], ids=repr)  # fmt: skip
def test_a_rule_of_an_epoch_that_is_out_of_range_is_refused(changes):
    assert len(epoch_tails(RELEASE, fields(**POINTS_OF_A_RULE))) == 9
    with pytest.raises(ProofError):
        epoch_tails(RELEASE, fields(**{**POINTS_OF_A_RULE, **changes}))
    with pytest.raises(ProofError, match="unknown"):
        delta_of_epoch(RELEASE, False, fields(more=1), 0.5)
