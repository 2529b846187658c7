"""Accountants whose answers about epsilon and delta are not those of one bound."""

from accountant import Tight


class DeltaOfAnotherLattice(Tight):
    """Answers delta by a bound that is a little looser than that of epsilon."""

    def delta(self, plan, epsilon):
        return super().delta(plan, epsilon) * (1 + 7.7e-6)


class DeltaOfASharperBound(Tight):
    """Answers a delta at which epsilon is greater."""

    def delta(self, plan, epsilon):
        return super().delta(plan, epsilon) / 2


class EpsilonOfHalfTheDelta(Tight):
    """Answers more than other accountants, though delta agrees."""

    def epsilon(self, plan, delta):
        return super().epsilon(plan, delta / 2)

    def delta(self, plan, epsilon):
        return 2 * super().delta(plan, epsilon)
