"""Wrong roles: a table that gives too much, and checks that are left out on one side."""

from accountant.book import account, dataset_terms, reservations, verification
from accountant.book.chain import approvals, roles, signatures
from accountant.book.limits import second_curator
from tests.mutants.edits import edit


def lets_analysts_raise(patch):
    """Has another table of roles than the pages say, for the log and for verify."""
    patch.setitem(roles.ACTS, "terms", roles.ACTS["plan"])


def lets_analysts_set_aside(patch):
    """Takes what is set aside at an opening for any other plan."""
    edit(patch, roles, "act_of", 'kind == "plan" and "runs" in facts', "False")


def writes_whatever_the_role(patch):
    """Signs what the author's role does not allow."""
    edit(patch, signatures.Signatures, "_refuse_to_write", "if why:", "if False:")


def verifies_no_role(patch):
    """Finds a signature right, and does not ask whose act it is."""
    edit(
        patch, signatures.Signatures, "_refuse_other_author",
        "elif refusal := roles.refusal(str(author), facts):",
        "elif refusal := '':",
    )  # fmt: skip


def verifies_no_signature(patch):
    """Believes the name that an entry states."""
    edit(
        patch, signatures.Signatures, "_refuse_other_author",
        "not isinstance(signature, str) or not public_key.has_signed(",
        "not isinstance(signature, str) or not (lambda *_: True)(",
    )  # fmt: skip


def verifies_by_any_roles(patch):
    """Takes the roles that an entry names, though others are in force."""
    edit(
        patch, signatures.Signatures, "refuse_other_roles",
        'facts.get("roles", 0) != roles_before', "False",
    )  # fmt: skip
    edit(patch, signatures.Signatures, "refuse_lost_roles", "if is_lost or", "if False and")


def raises_for_one(patch):
    """Writes a raise of one curator where two are needed."""
    edit(patch, second_curator, "append_or_propose", "not needs_second(", "True or needs_second(")
    patch.setattr(dataset_terms, "append_or_propose", second_curator.append_or_propose)


def raises_for_one_where_the_data_set_asks_for_two(patch):
    """Goes by the roles alone."""
    edit(patch, approvals, "needs_second", "needs_two(roles) or asks_for_two(before)",
         "needs_two(roles)")  # fmt: skip
    patch.setattr(second_curator, "needs_second", approvals.needs_second)


def asks_no_more_by_new_terms(patch):
    """Lets one curator take back that two are asked for."""
    edit(patch, approvals, "needs_second", "asks_for_two(before) > asks_for_two(after)", "False")


def lets_one_curator_be_two(patch):
    """Lets one curator change the roles, though a data set asks for two."""
    patch.setattr(signatures, "guarded_roles", lambda facts, is_asked_for: facts)
    patch.setattr(second_curator, "guarded_roles", lambda facts, is_asked_for: facts)


def spends_what_one_curator_of_a_data_set_gave(patch):
    """Looks for second curators only where the roles ask for them."""
    edit(patch, second_curator, "terms_of_one", "not is_asked_for and not any(", "not any(")
    patch.setattr(account, "terms_of_one", second_curator.terms_of_one)


def lets_earlier_versions_write(patch):
    """Goes on in the format of books in which no data set asks for two curators."""
    edit(patch, signatures.Signatures, "facts_of_next", "FORMAT_OF_TWO if is_of_two else FORMAT",
         "FORMAT")  # fmt: skip


def approves_its_own_proposal(patch):
    """Lets one curator make both calls."""
    edit(patch, approvals, "refusal_of", 'stated["author"] == facts["author"]', "False")


def approves_twice(patch):
    """Lets a proposal be used a second time, after the budget was lowered."""
    edit(patch, approvals, "refusal_of", "or proposal.seq < changed_at", "")


def approves_another_change(patch):
    """Takes any open proposal for that of the change."""
    edit(
        patch, approvals, "refusal_of", 'return "names a proposal of another change"', "pass",
    )  # fmt: skip


def verifies_one_curator(patch):
    """Asks for no second curator in verification."""
    patch.setattr(verification, "missing_approval", lambda *_: "")


def verifies_other_roles_of_one(patch):
    """Lets one curator state that one is enough."""
    edit(patch, approvals, "needs_second", "if kind == ROLES:", "if False:")


def verifies_a_later_end_of_one(patch):
    """Takes a later end for nothing more."""
    edit(
        patch, approvals, "needs_second",
        'or (after.get("expires") or EVERY_CLOCK) > (before.get("expires") or EVERY_CLOCK)', "",
    )  # fmt: skip


def spends_what_one_curator_gave(patch):
    """Leaves a raise of one curator to verification, and spends meanwhile."""
    patch.setattr(account, "terms_of_one", lambda *_: None)


def spends_by_the_last_terms_alone(patch):
    """Looks at the terms in force, and at none of those before."""
    edit(patch, second_curator, "terms_of_one", "entry = before", "return None")
    patch.setattr(account, "terms_of_one", second_curator.terms_of_one)


def spends_by_the_roles_that_are_stated(patch):
    """Takes the roles that an entry of terms names, though others are in force."""
    edit(patch, second_curator, "terms_of_one", "roles_at(roles)", "roles_at(entry.facts['roles'])")
    patch.setattr(account, "terms_of_one", second_curator.terms_of_one)


def changes_what_one_curator_gave(patch):
    """Refuses spends alone, so that a later change covers the raise."""
    edit(patch, account.Account, "last_charge", "self.refuse_terms_of_one()", "pass")


def makes_steps_after_an_end_that_one_curator_moved(patch):
    """Refuses charges alone."""
    edit(
        patch, reservations.Reservations, "_refuse_if_over",
        "account.refuse_terms_of_one()", "pass",
    )  # fmt: skip
