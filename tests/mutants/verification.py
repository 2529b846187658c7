"""Verifications that pass over something: each takes a refusal away, or a part of its reason."""

import ast
import inspect
import textwrap

from accountant.book import verification
from accountant.book.checks.account_check import AccountsCheck, ChargeCheck, TermsCheck
from accountant.book.checks.quota_check import QuotaCheck
from accountant.book.checks.time_check import TimeCheck
from accountant.book.verification import IndexCheck, LogCheck
from tests.mutants.edits import edit

CHECKS = (LogCheck, AccountsCheck, TimeCheck, ChargeCheck, TermsCheck, QuotaCheck, IndexCheck)


def refusals():
    """Every statement that refuses: the class, the function, its lines, and the sentence."""
    for owner in CHECKS:
        for name, function in vars(owner).items():
            if inspect.isfunction(function):
                source = textwrap.dedent(inspect.getsource(function))
                for one in ast.walk(ast.parse(source)):
                    words = _sentence(one)
                    if words:
                        yield owner, name, ast.get_source_segment(source, one), words


def _sentence(statement):
    """What a statement that refuses says; "" of others."""
    call = getattr(statement, "value" if isinstance(statement, ast.Expr) else "exc", None)
    if not isinstance(statement, ast.Expr | ast.Raise) or not isinstance(call, ast.Call):
        return ""
    called = getattr(call.func, "id", getattr(call.func, "attr", ""))
    given = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return given[0] if called in {"LedgerCorrupt", "_refuse"} and given else ""


def silenced(owner, name, statement):
    """A check without one of its refusals, wherever it stands in a function."""

    def says_nothing(patch):
        edit(patch, owner, name, statement, "pass", everywhere=True)

    return says_nothing


SILENT = {
    (owner.__name__, name, words): silenced(owner, name, statement)
    for owner, name, statement, words in refusals()
}  # fmt: skip


def believes_any_charge_before(patch):
    """Does not ask which charge an entry names as the one before."""
    edit(
        patch, ChargeCheck, "check_entry",
        'entry.facts.get("before", self.last_seq) != self.last_seq', "False",
    )  # fmt: skip


def believes_a_charge_before_of_any_number(patch):
    """Asks only whether an entry names a charge at all."""
    edit(
        patch, ChargeCheck, "check_entry", "!= self.last_seq",
        "> self.last_seq",
    )  # fmt: skip


def takes_two_answers(patch):
    """Keeps what was answered among the reserved."""
    edit(patch, LogCheck, "check_entry", 'self._reserved.discard(facts["of"])', "pass")


def takes_missing_bytes(patch):
    """Checks the bytes that are there."""
    edit(patch, LogCheck, "check_attachments", "if self._attached:", "if False:")


def sees_no_indexes(patch):
    """Reads the chain, and not what leads to its entries."""
    edit(patch, verification, "verify_log", "index.check_entry(entry)", "pass")


def counts_a_notion_without_a_plan(patch):
    """Lets a total change its notion where no plan was certified."""
    edit(patch, ChargeCheck, "_add", 'is_certified != ("certified" in facts) or ', "")


def any_run_of_what_is_aside(patch):
    """Looks at the plan of a run, and not at what paid for it."""
    edit(
        patch, ChargeCheck, "_check_runs", "!= (set_aside_entry.seq, aside",
        "!= (facts[PAID], aside",
    )  # fmt: skip


def runs_in_any_order(patch):
    """Counts the runs, and does not read their numbers."""
    edit(patch, ChargeCheck, "_check_runs", 'facts["nth"] != runs_made + 1 or ', "")


def more_runs_than_were_paid(patch):
    """Numbers the runs, and does not ask how many were set aside."""
    edit(patch, ChargeCheck, "_check_runs", ' or runs_made >= aside["runs"]', "")


def believes_totals_of_users(patch):
    """Compares with the budget only where all users pay together."""
    edit(
        patch, ChargeCheck, "_add", "exceeds_every_way(notion, after, self._each_total())",
        "self._users is None and exceeds_every_way(notion, after, self._each_total())",
    )  # fmt: skip


def believes_quotas_of_users(patch):
    """Compares with the quota of an author only where all users pay together."""
    edit(
        patch, QuotaCheck, "check_charge", "quota is not None and",
        "account.users is None and quota is not None and",
    )  # fmt: skip


def changes_any_terms(patch):
    """Believes what a change of terms says it changed."""
    edit(
        patch, TermsCheck, "check_change",
        "change not in CHANGES or before_facts != after_facts",
        "change not in CHANGES",
    )  # fmt: skip


def changes_of_any_kind(patch):
    """Takes a change that no version knows."""
    edit(
        patch, TermsCheck, "check_change",
        "change not in CHANGES or before_facts != after_facts",
        "change in CHANGES and before_facts != after_facts",
    )  # fmt: skip


def windows_of_any_largest_budget(patch):
    """Takes a largest budget that is too large."""
    edit(patch, TermsCheck, "check_change", "terms.largest != largest", "terms.largest < largest")


PARTIAL = {
    believes_any_charge_before: "does not name the charge before it",
    believes_a_charge_before_of_any_number: "does not name the charge before it",
    takes_two_answers: "answers what was not reserved, or was answered before",
    takes_missing_bytes: "its bytes are missing",
    sees_no_indexes: "its place in the index is wrong",
    counts_a_notion_without_a_plan: "counts what was spent in another way than the entry before",
    any_run_of_what_is_aside: "is a run of another plan than was set aside",
    runs_in_any_order: "is one run more than was set aside",
    more_runs_than_were_paid: "is one run more than was set aside",
    believes_totals_of_users: "spends more than the budget",
    believes_quotas_of_users: "spends more than the quota of its author",
    changes_any_terms: "changes other terms than it says",
    changes_of_any_kind: "changes other terms than it says",
    windows_of_any_largest_budget: "does not say the largest budget that a window had",
}
