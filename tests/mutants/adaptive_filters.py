"""Wrong filters: each lets an adversary who looks at answers spend more than the budget."""

from accountant import BudgetExceeded, Sequential, Tight
from accountant.ledger.composition_notions import notion_of


def a_budget_for_every_sum(budget):
    """Charges every release to one of two filters, each of which has the whole budget."""
    pure, rdp = notion_of("pure", budget), notion_of("rdp", budget)

    def charge(total, loss):
        try:
            return pure.charge(total[0], loss), total[1]
        except BudgetExceeded:
            return total[0], rdp.charge(total[1], loss)

    return charge, (pure.zero, rdp.zero)


def the_profile_that_was_spent(budget):
    """Admits whatever keeps the exact cost of all releases so far within the budget."""
    cost = {}

    def charge(total, loss):
        after = tuple(sorted((*total, loss), key=repr))
        if after not in cost:
            cost[after] = Tight().epsilon(Sequential(after), budget.delta)
        if cost[after] > budget.epsilon:
            raise BudgetExceeded(0.0, cost[after], budget)
        return after

    return charge, ()


def a_sum_that_forgets_the_first(budget):
    """Starts to count with the second release."""
    right = notion_of("pure-or-rdp", budget)

    def charge(total, loss):
        if total is None:
            return right.zero
        return right.charge(total, loss)

    return charge, None


MUTANTS = [a_budget_for_every_sum, the_profile_that_was_spent, a_sum_that_forgets_the_first]
