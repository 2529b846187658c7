"""One epoch of random allocation with Gaussian noise: a sum of log-normals, by one integral.

Each record is used in one of t steps, and which one stays secret.  P is the law of an epoch's
answers with the record, Q without it.  Under Q the likelihood ratio P / Q of an epoch is S / t,
S = sum_i V_i with V = e^{mu x - mu^2/2} and x of N(0, 1).  With g(K) = E (K - S)_+ delta is

    (g(K) + t - K) / t, K = t e^eps, of (P, Q);     (e^eps / t) g(K), K = t e^-eps, of (Q, P)

A proof file chooses the numbers of the rules here; whatever they are, the result is a ball (`arb`)
that contains the true number, only wider where they are bad.

With phi(s) = E e^{-sV} the transform int_0^oo g(K) e^{-sK} dK is phi(s)^t / s^2, and that of
G(K) = P(S < K) is phi(s)^t / s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flint import acb, arb

from .balls import exact, exponential_sums, nodes_on_line, normal_tail, spend
from .document import Fields, need
from .releases import Release

Tail = tuple[arb, arb, arb]  # P(X > x), Q(X > x) and the loss at x


class Line(NamedTuple):
    """Numbers that a proof chooses: a line Re s = a of nodes h apart, and a rule for phi."""

    a: float
    h: float
    y: arb  # the rule integrates over Im x = -y
    step: arb
    turn: arb  # Im x = -turn is where phi is bounded far up
    node_count: int


def read_line(entry: Fields) -> Line:
    """Return the line of an entry, or of a rule."""
    a, h = entry.real("a", 0, 1e30), entry.real("h", 0, 1e30)
    y, step, turn = (arb(entry.real(key, 1e-3, 99.0)) for key in ("y", "step", "turn"))
    return Line(a, h, y, step, turn, entry.whole("nodes", 2, 2**17))


def delta_of_epoch(release: Release, back: bool, entry: Fields, epsilon: float) -> arb:
    """Return delta of one epoch.

    Theorem (`one_step_allocation`: docs/proofs/random_allocation.md, The pair): it is
    (g(K) + t - K) / t with the record, and (e^eps / t) g(K) without it.
    """
    _, mu_squared, steps = release
    odds = arb(epsilon).exp()
    k = steps / odds if back else steps * odds
    line = read_line(entry)
    entry.done()
    excess = EpochTransform(exact(mu_squared), steps, line, [k]).excesses()[0]
    delta: arb = odds / steps * excess if back else (excess + steps - k) / steps
    return delta


def epoch_tails(release: Release, rule: Fields) -> list[Tail]:
    """Return the tails of the ratio S / t at K / t, for the K of a rule, all by one transform.

    Under Q the tail is 1 - G(K), and under P it is E S 1(S > K) / t = (g(K) + t - K G(K)) / t.  A
    sample of rate r (1 where it is not sampled) has (1-r) Q + r P for P, and the ratio
    1 - r + r S / t, which grows with S.
    """
    _, mu_squared, steps, *rates = release
    rate = exact(rates[0]) if rates else arb(1)
    line = read_line(rule)
    length, first = rule.whole("length", line.node_count, 2**18), rule.real("first", 1e-9, 1e12)
    count, period = rule.whole("count", 1, 2**17), 2 * arb.pi() / line.h
    points = [first + period * i / length for i in range(count)]
    rule.done()
    transform = EpochTransform(exact(mu_squared), steps, line, points, length)
    excesses, masses_below = transform.excesses(), transform.masses_below()
    return [
        (
            (1 - rate) * (1 - below) + rate * (excess + steps - k * below) / steps,
            1 - below,
            (1 - rate + rate * k / steps).log(),
        )
        for k, excess, below in zip(points, excesses, masses_below, strict=True)
    ]


class EpochTransform:
    """phi(s)^t on a line s = a + ijh, inverted at the points K, with what that leaves out.

    Theorem (`poisson_summation`): with T = 2 pi / h > K
    (h / 2 pi) sum_j e^{sK} phi(s)^t / s^2 = g(K) + sum_{k >= 1} e^{-akT} g(K + kT).
    """

    def __init__(
        self, mu_squared: arb, steps: int, line: Line, points: list[Any], length: int | None = None
    ) -> None:
        self.mu, self.mu_squared, self.steps = mu_squared.sqrt(), mu_squared, steps
        self.line, self.points, self.length = line, points, length
        self.period = 2 * arb.pi() / line.h
        # Nodes of the rule for phi on each side, up to 18: beyond lies P(|x| > 18) < 1e-71.
        reach = int(18 / float(line.step) + 2)
        spend(60 * reach)
        quarter_turn = arb.pi() / 2
        converges = (
            points[-1] < self.period
            and 2 * line.y * self.mu <= quarter_turn
            and self.mu * line.turn <= quarter_turn
            and line.a > 0
        )
        need(converges and steps > 1, "a line of the allocation where nothing converges")
        need(length is None or length & (length - 1) == 0, "a transform that is slow")
        abscissas = [acb(line.step * i, -line.y) for i in range(-reach, reach + 1)]
        scale = line.step / (2 * arb.pi()).sqrt()
        self.weights = [scale * (-x * x / 2).exp() for x in abscissas]
        self.minus_v = [-(self.mu * x - self.mu**2 / 2).exp() for x in abscissas]
        self.rule_error = self.error_of_rule()
        self.nodes = nodes_on_line(line.a, line.h, line.node_count)
        self.integrands = self.values_on_line()
        self.size = self.size_beyond()

    def error_of_rule(self) -> arb:
        """Return a bound on the error of phi by a trapezoid rule on Im x = -y.

        Theorem (`rotated_log_normal`: random_allocation.md, Errors): phi is the integral of
        n(x) e^{-sV(x)} on that line, where |e^{-sV}| <= 1 for Re s > 0, Im s >= 0 and
        0 <= mu y <= pi/2.

        Theorem (`trapezoid_on_a_strip`): the sizes N(0) and N(2y) of lines y away are at most 1
        and e^{2y^2}.  Nodes beyond 18 add at most two normal tails, times e^{y^2/2}.
        """
        y = self.line.y
        strip_error = (1 + (2 * y * y).exp()) / ((2 * arb.pi() * y / self.line.step).exp() - 1)
        return (strip_error + 2 * (y * y / 2).exp() * normal_tail(arb(18))).upper()

    def values_on_line(self) -> list[acb]:
        """Return e^{sK} phi(s)^t / s at the nodes, K the first point; half of it at j = 0."""
        line, ball = self.line, arb(0, self.rule_error)
        tilted = [w * (line.a * v).exp() for w, v in zip(self.weights, self.minus_v, strict=True)]
        phi = exponential_sums(tilted, self.minus_v, line.h, line.node_count)
        values = [
            (s * self.points[0]).exp() * (value + acb(ball, ball)) ** self.steps / s
            for s, value in zip(self.nodes, phi, strict=True)
        ]
        values[0] /= 2  # the nodes below the real line are conjugates of those above
        return values

    def size_beyond(self) -> arb:
        """Return a bound on |phi(a + iv)| for all v from the last node on.

        Theorem (`far_on_a_line`: random_allocation.md, Errors): on Im x = -D
        |phi(a + iv)| <= e^{D^2/2} phi(a cos mu D + v sin mu D), which falls in v.
        """
        turn, angle = self.line.turn, self.mu * self.line.turn
        real_s = self.line.a * angle.cos() + self.last_height() * angle.sin()
        terms = (w * (real_s * v).exp() for w, v in zip(self.weights, self.minus_v, strict=True))
        phi = sum(terms, acb(0)).real + arb(0, self.rule_error)
        return ((turn * turn / 2).exp() * phi).min(arb(1))

    def last_height(self) -> arb:
        """Return the imaginary part U of the last node."""
        return arb(self.line.h) * (self.line.node_count - 1)

    def excesses(self) -> list[arb]:
        """Return g(K) at the points.

        Beyond U the integrand is at most e^{aK} |phi|^t / v^2.  Of the aliases g(K + kT) is at most
        K + kT, so they add at most K x / (1 - x) + T x / (1 - x)^2 with x = e^{-aT}.
        """
        x, top_k = (-self.line.a * self.period).exp(), self.points[-1]
        truncation = self.tail_factor() * self.size
        aliases = top_k * x / (1 - x) + self.period * x / (1 - x) ** 2
        values = [value / s for value, s in zip(self.integrands, self.nodes, strict=True)]
        return self.inverted(values, truncation, aliases)

    def masses_below(self) -> list[arb]:
        """Return G(K) = P(S < K) at the points.

        Theorem (`tails_of_sums`): the same sum with 1/s in place of 1/s^2; as G <= 1, aliases add
        at most x / (1 - x).  Beyond U one of the t factors is at most
        e^{D^2/2} phi(v sin mu D) <= e^{D^2/2 + mu^2} / (v sin mu D), as phi(r) <= E 1/(rV).
        """
        x, turn = (-self.line.a * self.period).exp(), self.line.turn
        slope = (turn * turn / 2 + self.mu_squared).exp() / (self.mu * turn).sin()
        return self.inverted(self.integrands, self.tail_factor() * slope, x / (1 - x))

    def tail_factor(self) -> arb:
        """Return e^{aK} |phi|^(t - 1) / (pi U), which bounds the other factors beyond U."""
        growth: arb = (self.line.a * self.points[-1]).exp()
        return growth * self.size ** (self.steps - 1) / (arb.pi() * self.last_height())

    def inverted(self, values: list[acb], truncation: arb, aliases: arb) -> list[arb]:
        """Return the sums over the line at each point; several at once by a Fourier transform."""
        line = self.line
        sums = [sum(values, acb(0))]
        if len(self.points) > 1:
            length = self.length or line.node_count
            spend(4 * length)
            padded = [*values, *[acb(0)] * (length - line.node_count)]
            sums = [
                value * length * (line.a * (k - self.points[0])).exp()
                for k, value in zip(self.points, acb.dft(padded, inverse=True), strict=False)
            ]
        error = (-truncation - aliases).union(truncation)
        return [value.real * line.h / arb.pi() + error for value in sums]
