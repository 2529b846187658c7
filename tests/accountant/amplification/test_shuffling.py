"""Shuffling against the clone pair, exact binary responses, and published figures."""

from accountant import PureLoss, Shuffled, Tight


def test_many_users_weigh_no_less_than_one():
    from accountant.amplification.shuffling_bounds import binomial_window

    for users in (10**5, 10**7, 10**9):
        assert binomial_window(users, 0.3, 9.5)[1].sum() >= 1.0


def test_shuffling_composes_in_seconds():
    for plan in (2 * Shuffled(PureLoss(1.0), 1), 3 * Shuffled(PureLoss(0.3), 1000)):
        found = Tight().certify(plan, 1e-6)
        assert 0 < found.lower <= found.upper
