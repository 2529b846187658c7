"""Wrong refusals: each takes one away from one entrance of a gate."""

from accountant import Filter
from accountant.book.book_ledger import BookLedger, BookMeter
from accountant.ledger import gate, ledger, ordered_map, plan_cursor
from accountant.ledger.gate import Gate
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_copies import PrivateCopies
from tests.mutants.edits import edit

WITHIN = "self._refuse_within_a_query(copy)"
SAMPLE = "self._refuse_secret_sample(copy)"
PROCESS = "self._refuse_other_process(copy)"


def blocks_within_a_query(patch):
    """Lets a query begin blocks."""
    edit(patch, Gate, "release_blocks", WITHIN, "pass")


def releases_within_a_query(patch):
    """Lets a query release."""
    edit(patch, Gate, "_charge_and_answer", "self._refuse_within_a_query(mechanism)", "pass")


def labels_within_a_query(patch):
    """Lets a query ask for what has a label."""
    edit(patch, BookLedger, "_release_once", "self._refuse_within_a_query(mechanism)", "pass")
    edit(patch, Gate, "_charge_and_answer", "self._refuse_within_a_query(mechanism)", "pass")


def spends_of_a_book_within_a_query(patch):
    """Lets a query spend the budget of a book."""
    edit(patch, BookLedger, "spend", WITHIN, "pass")


def spends_of_a_filter_within_a_query(patch):
    """Lets a query spend the budget of a filter."""
    edit(patch, Filter, "spend", WITHIN, "pass")


def plans_of_a_filter_within_a_query(patch):
    """Lets a query spend a whole plan."""
    edit(patch, Filter, "spend_plan", WITHIN, "pass")


def plans_of_a_book_within_a_query(patch):
    """Lets a query pay for a whole plan."""
    edit(patch, BookLedger, "reserving", WITHIN, "pass")


def checks_within_a_query(patch):
    """Says that a plan may be released where no release is answered."""
    edit(patch, Gate, "check", WITHIN, "pass")


def forgets_that_it_answers(patch):
    """Takes a gate for idle while its blocks are made."""
    edit(patch, Gate, "release_blocks", "self._answering = True", "self._answering = False")


def samples_of_each_user(patch):
    """Releases a secret sample to users who know whether they are in it."""
    edit(patch, Gate, "release_each", SAMPLE, "pass")


def samples_of_blocks(patch):
    """Does so block by block."""
    edit(patch, Gate, "release_blocks", SAMPLE, "pass")


def releases_in_two_processes(patch):
    """Lets a fork of the process spend the plan a second time."""
    patch.setattr(Gate, "_refuse_other_process", lambda *_: None)


def spends_of_a_filter_in_two_processes(patch):
    """Charges a copy of the filter that ends with its process."""
    edit(patch, Filter, "spend", PROCESS, "pass")


def plans_of_a_filter_in_two_processes(patch):
    """Charges a plan to a copy of the filter that ends with its process."""
    edit(patch, Filter, "spend_plan", PROCESS, "pass")


def plans_of_a_book_in_two_processes(patch):
    """Pays for a plan whose releases are refused."""
    edit(patch, BookLedger, "reserving", PROCESS, "pass")


def checks_in_two_processes(patch):
    """Says that a plan may be released by a process that may release nothing."""
    edit(patch, Gate, "check", PROCESS, "pass")


def checks_what_is_not_declared(patch):
    """Says that a plan may be released whose mechanism is refused."""
    edit(patch, Gate, "check", "of_spent", "of_plan")


def takes_any_query(patch):
    """Finds out that a query is none when it is asked."""
    edit(patch, Gate, "_admitted", "not callable(query)", "False")


def releases_what_is_closed(patch):
    """Does not ask whether the gate was closed."""
    edit(patch, BookMeter, "refuse_closed", "self._closed", "False")


def plans_of_a_closed_book(patch):
    """Pays for a plan whose releases are refused."""
    edit(patch, BookLedger, "reserving", "meter.refuse_closed(copy)", "pass")


def checks_what_is_closed(patch):
    """Says that a plan may be released by a gate that was closed."""
    edit(patch, BookMeter, "check", "self._closed", "False")


def takes_any_executor(patch):
    """Charges a block before it asks whether there are workers."""
    edit(patch, Gate, "release_blocks", "not isinstance(executor, Executor)", "False")


def takes_any_reduction(patch):
    """Releases a block before it asks what becomes of it."""
    edit(patch, Gate, "release_blocks", "not callable(reduce)", "False")


def checks_no_plan_of_a_book(patch):
    """Takes every plan for one that comes next."""
    patch.setattr(BookMeter, "check", lambda self, plan: None)


def users_below_the_first(patch):
    """Counts users from the end."""
    edit(patch, gate, "checked_users", "index.min() >= 0 and ", "")


def users_beyond_the_last(patch):
    """Finds out that there is no such user when the data are read."""
    edit(patch, gate, "checked_users", " and index.max() < users", "")


def users_twice(patch):
    """Asks a user twice in one release."""
    edit(patch, gate, "checked_users", "if not rising and", "if False and")


def masks_of_any_length(patch):
    """Takes a mask for numbers of users."""
    edit(patch, gate, "checked_users", 'index.dtype.kind not in "iu"', 'index.dtype.kind in "f"')


def steps_along_any_plan(patch):
    """Releases what another leaf of the plan allows, or none."""
    patch.setattr(plan_cursor, "refuse_other", lambda *_: None)


def takes_what_is_not_declared(patch):
    """Does not look whether the class of a mechanism is declared."""
    patch.setattr(PrivateCopies, "_refuse_undeclared", lambda *_: None)


def has_another_entrance(patch):
    """A new way to ask, which no table names."""
    patch.setattr(Ledger, "release_twice", lambda self: None, raising=False)


def passes_over_failed_work(patch):
    """Ends where a worker failed, as if there had been no more."""
    edit(
        patch, ordered_map, "results_in_order",
        "while waiting:", "while waiting and waiting[0].exception() is None:",
    )  # fmt: skip


def passes_over_failed_work_in_the_middle(patch):
    """Leaves a piece out that failed while others were still sent."""
    edit(
        patch, ordered_map, "results_in_order",
        "                yield waiting.popleft().result()\n        while",
        "                done = waiting.popleft()\n"
        "                if done.exception() is None:\n"
        "                    yield done.result()\n        while",
    )  # fmt: skip


def passes_over_lost_pieces(patch):
    """Ends where the workers with the data died."""
    edit(
        patch, ledger, "answers_of_held_blocks", "raise RuntimeError(LOST) from None",
        "return",
    )  # fmt: skip


def takes_nothing_for_answers(patch):
    """Hands on whatever an executor returned."""
    patch.setattr(ledger, "refuse_impossible_outputs", lambda *_: None)
    patch.setattr(ledger, "immutable_output", lambda output: output)
