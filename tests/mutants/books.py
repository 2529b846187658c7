"""Wrong totals and books: one coordinate, mixed neighbours, lines that are lost, terms."""

import datetime

from accountant.book import (
    book,
    clock,
    dataset_terms,
    log,
    quotas,
    reservations,
)
from accountant.book.account import Account
from accountant.book.chain import entries
from accountant.book.checks import account_check, quota_check, time_check
from accountant.book.limits import charges, user_totals, windows
from accountant.ledger import composition_notions, filters, odometer, totals
from accountant.plans.adjacency import joint_relation
from tests.mutants.edits import edit


def largest_tuple(patch):
    """Takes both coordinates of the total that spent most."""
    for module in (totals, reservations, user_totals, account_check):
        patch.setattr(module, "largest_total", max)


def worst_user_by_tuple(patch):
    """States both coordinates of the user who spent most."""
    for module in (reservations, user_totals, account_check):
        patch.setattr(module, "largest_total", max)


def verifies_one_coordinate(patch):
    """Accepts a chain whose masses at infinity grow."""
    edit(
        patch, account_check.ChargeCheck, "_add",
        "exceeds_every_way(notion, after, self._each_total())",
        "after.spent > notion.limit.spent",
    )  # fmt: skip


def verifies_no_limit(patch):
    """Recomputes sums and forgets the budget."""
    edit(
        patch, account_check.ChargeCheck, "_add",
        "exceeds_every_way(notion, after, self._each_total())", "False",
    )  # fmt: skip


def spends_after_the_end(patch):
    """Reads the terms and spends all the same."""
    patch.setattr(reservations.Reservations, "_refuse_if_over", lambda _: None)


def keeps_the_terms_it_knew(patch):
    """Does not look for changes that another process wrote."""
    edit(patch, Account, "follow_terms", "mark != self._terms_mark", "False")


def trusts_the_clock(patch):
    """Lets a clock that is set back bring an expired data set to life."""
    edit(patch, log, "times_after", "max(clock, head.latest)", "clock")


def lowers_below_what_was_spent(patch):
    """Takes any budget."""
    patch.setattr(dataset_terms, "exceeds_every_way", lambda *_: False)


def verifies_no_end(patch):
    """Does not ask whether a charge came before the end."""
    patch.setattr(account_check.TermsCheck, "check_spend", lambda *_: None)


def verifies_no_least_budget(patch):
    """Accepts terms below what was spent."""
    edit(
        patch, account_check.TermsCheck, "check_change",
        "exceeds_every_way(*after, class_totals)", "False",
    )  # fmt: skip


def verifies_no_time(patch):
    """Accepts times that run back."""
    edit(patch, time_check.TimeCheck, "check_entry", "self._timed and", "False and")


def verifies_any_delta(patch):
    """Accepts a delta that falls."""
    edit(
        patch, account_check.TermsCheck, "check_change",
        "terms.budget.delta < old_terms.budget.delta", "False",
    )  # fmt: skip


def mixes_neighbours(patch):
    """Adds up what was stated for different neighbours."""

    def last_stated(stated, asked):
        return asked.relation or stated

    for module in (filters, odometer, reservations):
        patch.setattr(module, "joint_relation", last_stated)


def forgets_the_neighbours(patch):
    """Lets a release of any neighbours wipe out those of the ones before."""

    def last_relation(stated, asked):
        joint_relation(stated, asked)
        return asked.relation

    for module in (filters, odometer, reservations):
        patch.setattr(module, "joint_relation", last_relation)


def two_limits(patch):
    """Gives rho its own limit beside the divergence, which needs another delta."""
    edit(
        patch, composition_notions, "_pure_or_renyi",
        "rho = min(largest_rho, largest_divergence / order * (1 - ROUND_OFF))", "rho = largest_rho",
    )  # fmt: skip


def loses_a_line_between_pages(patch):
    """Begins the next page one entry too late."""
    edit(patch, log, "paged_rows", "rows[-1][0]", "rows[-1][0] + 1")


def stops_at_a_full_page(patch):
    """Takes a full page for the last one."""
    edit(
        patch, book, "read_history", "len(entries) < ROWS_PER_PAGE",
        "len(entries) <= ROWS_PER_PAGE",
    )  # fmt: skip


def reads_a_line_twice(patch):
    """Begins the next page with the last entry of the one before."""
    edit(
        patch, book, "read_history", "start = entries[-1].seq",
        "start = entries[-1].seq - 1",
    )  # fmt: skip


def spends_over_the_quota(patch):
    """Notes what an author spent and refuses nothing."""
    patch.setattr(quotas.AuthorLimit, "refuse_above", lambda *_: None)


def forgets_the_last_charge(patch):
    """Begins an author's total anew with each charge."""
    edit(
        patch, quotas, "author_limit", 'facts["quota"], decoded(notion, own)', 'facts["quota"], {}'
    )
    patch.setattr(reservations, "own_facts", quotas.own_facts)


def forgets_what_was_before_quotas(patch):
    """Counts an author's spends from the first quota on."""
    edit(
        patch, dataset_terms, "state_quota", "account.author_totals().parts",
        "account.uncharged_authors().parts",
    )  # fmt: skip


def forgets_quotas_at_the_change_over(patch):
    """Goes on with the quota that is set, and without those that were listed."""
    patch.setattr(dataset_terms, "change_over_quotas", lambda *_: None)


def counts_quotas_by_a_wrong_clock(patch):
    """Corrects the clock, and leaves what authors charged in the windows it had opened."""
    patch.setattr(clock.WindowSums, "changed_quotas", lambda *_: {})


def counts_users_of_a_quota_together(patch):
    """Adds a charge to what the user with the largest total has paid, whoever pays."""
    edit(
        patch, charges.AuthorTotals, "largest_of_payers", "charge.who, charge.spend",
        "None, charge.spend",
    )  # fmt: skip


def verifies_no_quota(patch):
    """Recomputes an author's total and forgets the quota."""
    edit(
        patch, quota_check.QuotaCheck, "check_charge", "is_over(quota, notion, after)", "False",
    )  # fmt: skip


def trusts_the_clock_in_windows(patch):
    """Takes the time of the machine for that of the log."""
    edit(patch, log, "times_after", "clock > window and", "clock <= window or")


def counts_shorter_windows(patch):
    """Forgets a spend after 15 days."""
    edit(patch, windows.Window, "age", "// kind.length", "// (kind.length // 2)")


def carries_for_ever(patch):
    """Adds up what windows left, and forgets that it was spent since."""
    edit(
        patch, windows.Window, "notion",
        "carried = notion.with_more(carried.left", "carried = carried.with_more(notion.left",
    )  # fmt: skip


def carries_from_before_the_opening(patch):
    """Gives windows a rest that were over when the data set was opened."""
    opened = "min(self.carry, parts_since_opening // length - 1)"
    edit(patch, windows.Window, "notion", opened, "self.carry")


def forgets_a_month(patch):
    """Counts only the month before as a month ago."""
    months = windows.CALENDAR["month"]._replace(number=lambda day: day.month)
    patch.setitem(windows.CALENDAR, "month", months)


def believes_every_clock(patch):
    """Opens a window by a clock that was not confirmed."""
    edit(patch, log, "times_after", "clock <= confirmed or not is_jump(window, clock)", "True")


def believes_a_step_of_two_days(patch):
    """Opens a window by a clock that is up to two days ahead."""
    patch.setattr(entries, "BELIEVED_STEP", datetime.timedelta(2))


def spends_by_a_clock_that_is_ahead(patch):
    """Spends in the window before, and does not say that the clock is ahead."""
    patch.setattr(log.Log, "refuse_clock_ahead", lambda _: None)


def corrects_what_was_reached_step_by_step(patch):
    """Gives back what was spent by a clock that was right."""
    patch.setattr(clock.WindowSums, "refuse_unless_jumped", lambda *_: None)


def corrects_by_a_clock_that_is_ahead(patch):
    """Sets the log's time to that of a clock which was not confirmed."""
    edit(
        patch, clock.WindowSums, "refuse_unless_jumped",
        "now > self._log.confirmed and", "False and",
    )  # fmt: skip


def gives_back_what_a_wrong_clock_spent(patch):
    """Forgets the charges that a correction moves."""
    edit(
        patch, windows.Window, "correct",
        "notion.add(parts.get(here, notion.zero), parts.pop(label))",
        "parts.pop(label) and parts.get(here, notion.zero)",
    )  # fmt: skip


def corrects_what_the_last_charge_states(patch):
    """Does not look for what a wrong clock has dropped as too old."""
    edit(patch, Account, "note_parts", "parts.update(", "parts.clear(); parts.update(")


def charges_one_bucket(patch):
    """Charges the first of the buckets."""
    edit(
        patch, reservations.Reservations, "_charge", 'in facts["buckets"]\n',
        'in facts["buckets"][:1]\n',
    )  # fmt: skip


def adds_up_buckets(patch):
    """Begins a bucket where the largest stands."""
    edit(
        patch, reservations.Reservations, "_charge",
        "spend(account.bucket_total(notion, bucket))", "spend(before)",
    )  # fmt: skip


def forgets_what_a_bucket_spent(patch):
    """Begins a bucket's total anew with each charge."""
    patch.setattr(Account, "bucket_total", lambda _, notion, bucket: notion.zero)


def verifies_no_parts(patch):
    """Trusts what charges say of months."""
    patch.setattr(account_check.ChargeCheck, "_check_parts", lambda *_: None)


def verifies_no_buckets(patch):
    """Trusts what charges say of buckets."""
    patch.setattr(
        account_check.ChargeCheck, "_check_buckets",
        lambda _, notion, facts, spend: map(notion.decode, facts["buckets"].values()),
    )  # fmt: skip


def verifies_no_runs(patch):
    """Trusts a run to be paid for."""
    patch.setattr(account_check.ChargeCheck, "_check_runs", lambda *_: None)


def remembers_what_was_rolled_back(patch):
    """Keeps entries that were read in a transaction which failed."""
    edit(patch, log.Log, "writing", "self.forget_entries()", "pass")


def proves_by_a_run_that_was_free(patch):
    """Does not look again whether a run is still free."""
    edit(
        patch,
        reservations.Reservations,
        "reserve_plan",
        "elif not paid and verified:",
        "elif False:",
    )


def forgets_the_users_of_a_step(patch):
    """Names the digest of a step's users, and does not store them."""
    edit(
        patch, reservations.Reservations, "reserve_step", "if users.raw is not None:", "if False:",
    )  # fmt: skip


def sets_one_run_aside_as_many(patch):
    """Writes one run of a plan as a plan of one run."""
    edit(patch, reservations.Reservations, "set_aside", "plan if runs == 1 else ", "")
