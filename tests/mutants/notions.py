"""Wrong notions of composition: monkeypatches of their methods."""

from accountant.ledger import additive_notions, composition_notions, totals
from accountant.ledger.additive_notions import AdditiveNotion, ZCDPNotion
from accountant.ledger.pure_dp_notion import PureDPNotion
from accountant.ledger.totals import CompositionNotion, Total


def rounds_sums_to_nearest(patch):
    """Adds floats as they come."""

    def add(self, total, cost):
        return Total(total.spent + cost.spent, total.infinity + cost.infinity)

    patch.setattr(AdditiveNotion, "add", add)


def forgets_masses_at_infinity(patch):
    """Adds epsilons alone."""

    def add(self, total, cost):
        return Total(total.spent + cost.spent, total.infinity)

    patch.setattr(PureDPNotion, "add", add)


def rounds_products_to_nearest(patch):
    """Multiplies floats as they come."""

    def times(self, cost, count):
        return Total(cost.spent * count, cost.infinity * count)

    patch.setattr(AdditiveNotion, "times", times)


def counts_one_more(patch):
    """Multiplies by one more than was asked."""
    right = PureDPNotion.times
    patch.setattr(PureDPNotion, "times", lambda self, cost, count: right(self, cost, count + 1))


def takes_the_last_part(patch):
    """Takes the last total for the largest."""
    patch.setattr(totals, "largest_total", lambda some: list(some)[-1])


def compares_what_was_spent_alone(patch):
    """Takes both coordinates of the total that spent most."""
    patch.setattr(totals, "largest_total", max)


def adds_parts_up(patch):
    """Lets a user pay for every part of a parallel."""

    def largest_total(some):
        some = list(some)
        return Total(sum(one.spent for one in some), sum(one.infinity for one in some))

    patch.setattr(totals, "largest_total", largest_total)


def limits_what_was_spent_alone(patch):
    """Lets masses at infinity grow."""
    patch.setattr(
        CompositionNotion, "exceeds", lambda self, total: not total.spent <= self.limit.spent
    )


def limits_masses_at_infinity_alone(patch):
    """Lets what was spent grow."""
    patch.setattr(
        CompositionNotion, "exceeds", lambda self, total: not total.infinity <= self.limit.infinity
    )


def takes_a_tenth_more_delta(patch):
    """Sets a limit for a larger delta than the budget has."""
    right = composition_notions.spendable_delta
    patch.setattr(composition_notions, "spendable_delta", lambda budget: 1.1 * right(budget))


def writes_six_digits(patch):
    """Writes decimals as short as they are shown."""
    patch.setattr(PureDPNotion, "encode", lambda self, total: [f"{one:.6g}" for one in total])


def drops_the_last_bits(patch):
    """Writes fifteen digits of a float."""
    patch.setattr(
        AdditiveNotion, "encode", lambda self, total: [float(f"{one:.15g}").hex() for one in total]
    )


def looks_at_one_direction(patch):
    """Forgets that neighbours may change places."""
    patch.setattr(additive_notions, "worse_direction", lambda loss, cost_of: cost_of(loss))


def goes_on_from_the_last_total(patch):
    """Keeps a total of its own."""
    last = []

    def charge(self, total, loss):
        last[:] = [self.add(last[0] if last else total, self.cost(loss))]
        return last[0]

    patch.setattr(ZCDPNotion, "charge", charge)
