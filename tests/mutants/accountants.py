"""Wrong accountants."""

import math

from accountant import PLD, RDP, ZCDP, Advanced, Basic, Sequential


class CountForgotten(PLD):
    """Composes every loss once, whatever its count."""

    def one_way_epsilon(self, plan, delta):
        return super().one_way_epsilon(Sequential([loss for loss, _ in plan.losses()]), delta)


class ConversionWithoutPenalty(RDP):
    """Takes the best divergence for epsilon and forgets what delta costs."""

    def one_way_epsilon(self, plan, delta):
        return super().one_way_epsilon(plan, 0.99)


class HalfTheRho(ZCDP):
    """Bounded range for everything."""

    def rho(self, plan):
        return super().rho(plan) / 8


class DeltaSpentTwice(Basic):
    """Gives every release the whole delta."""

    def one_way_epsilon(self, plan, delta):
        return sum(count * loss.epsilon_at(delta) for loss, count in plan.losses())


class DriftForgotten(Advanced):
    """Square-root composition without its drift, of a tenth of the losses."""

    def one_way_epsilon(self, plan, delta):
        square = sum(count * loss.max_loss**2 for loss, count in plan.losses())
        return math.sqrt(2 * math.log(1 / delta) * square) / 10


class DeltaHalved(PLD):
    """Answers half of delta."""

    def one_way_delta(self, plan, epsilon):
        return super().one_way_delta(plan, epsilon) / 2


class EpsilonInsteadOfItsPower(Basic):
    """Takes what is beyond epsilon as if e^epsilon were 1 + epsilon."""

    def one_way_delta(self, plan, epsilon):
        return super().one_way_delta(plan, math.expm1(epsilon))


class DeltaUpsideDown(RDP):
    """Asks for 1 / delta where delta is small."""

    def one_way_epsilon(self, plan, delta):
        return super().one_way_epsilon(plan, 1e-8 / delta)
