"""Wrong totals and books: one coordinate, mixed neighbours, lines that are lost."""

from accountant.book import account, book, log_reader, user_totals, verification
from accountant.ledger import composition_notions, filters, odometer, totals
from accountant.plans.adjacency import joint_relation
from tests.mutants.edits import edit


def largest_tuple(patch):
    """Takes both coordinates of the total that spent most."""
    for module in (totals, account, user_totals, verification):
        patch.setattr(module, "largest_total", max)


def worst_user_by_tuple(patch):
    """States both coordinates of the user who spent most."""
    for module in (account, user_totals, verification):
        patch.setattr(module, "largest_total", max)


def verifies_one_coordinate(patch):
    """Accepts a chain whose masses at infinity grow."""
    edit(
        patch, verification._LogCheck, "_add", "notion.exceeds(after) and",
        "after.spent > notion.limit.spent and",
    )  # fmt: skip


def verifies_no_limit(patch):
    """Recomputes sums and forgets the budget."""
    edit(patch, verification._LogCheck, "_add", "notion.exceeds(after) and", "False and")


def mixes_neighbours(patch):
    """Adds up what was stated for different neighbours."""

    def last_stated(stated, asked):
        return asked.relation or stated

    for module in (filters, odometer, account):
        patch.setattr(module, "joint_relation", last_stated)


def forgets_the_neighbours(patch):
    """Lets a release of any neighbours wipe out those of the ones before."""

    def last_relation(stated, asked):
        joint_relation(stated, asked)
        return asked.relation

    for module in (filters, odometer, account):
        patch.setattr(module, "joint_relation", last_relation)


def two_limits(patch):
    """Gives rho its own limit beside the divergence, which needs another delta."""
    edit(
        patch, composition_notions, "_pure_or_renyi",
        "rho = min(zcdp.limit.spent, rdp.limit.spent / order * (1 - 1e-15))",
        "rho = zcdp.limit.spent",
    )  # fmt: skip


def loses_a_line_between_pages(patch):
    """Begins the next page one entry too late."""
    edit(patch, log_reader.LogReader, "_pages", "rows[-1][3]", "rows[-1][3] + 1")


def stops_at_a_full_page(patch):
    """Takes a full page for the last one."""
    edit(
        patch, book, "read_history", "len(read) < ROWS_PER_PAGE",
        "len(read) <= ROWS_PER_PAGE",
    )  # fmt: skip


def reads_a_line_twice(patch):
    """Begins the next page with the last entry of the one before."""
    edit(patch, book, "read_history", "start = read[-1].seq", "start = read[-1].seq - 1")
