"""Wrong audits: each takes an argument that it should refuse, or other neighbours than it says."""

import audits
from accountant.accountants import tradeoff_curves
from accountant.domains import Interval
from accountant.plans.adjacency import Adjacency
from audits.attacks import front, sensitivity
from audits.claims import arguments
from audits.statistics import single_run
from tests.laws import test_audit_arguments
from tests.mutants.edits import edit


def has_another_audit(patch):
    """A new audit, which no table names."""

    def audit_twice(release, confidence=0.95):
        return audits.audit(release, confidence=confidence)

    patch.setattr(audits, "audit_twice", audit_twice, raising=False)
    patch.setattr(audits, "__all__", [*audits.__all__, "audit_twice"])


def takes_confidences_at_the_ends(patch):
    """Takes 0 and 1 for confidences."""
    patch.setattr(
        type(arguments.CONFIDENCE), "check",
        lambda self, name, value, check=Interval.check: check(Interval(0.0, 1.0), name, value),
    )  # fmt: skip


def takes_any_confidence_of_a_sensitivity(patch):
    """Believes that a certain finding has no confidence."""
    edit(
        patch, sensitivity, "audit_sensitivity", 'CONFIDENCE.check("confidence", confidence)',
        "confidence",
    )  # fmt: skip
    patch.setattr(front, "audit_sensitivity", sensitivity.audit_sensitivity)


def errors_below_0(patch):
    """Takes errors below 0."""
    edit(patch, tradeoff_curves, "tradeoff", "(level >= 0) & ", "")
    patch.setattr(test_audit_arguments, "tradeoff", tradeoff_curves.tradeoff)


def errors_above_1(patch):
    """Takes errors above 1."""
    edit(patch, tradeoff_curves, "tradeoff", " & (level <= 1)", "")
    patch.setattr(test_audit_arguments, "tradeoff", tradeoff_curves.tradeoff)


def proves_without_an_error(patch):
    """Has a bound also where none was allowed to be wrong."""
    edit(
        patch, single_run, "epsilon_lower_one_run",
        "coins == 0 or alpha <= 0:\n        return 0.0", "alpha <= 0:\n        return math.inf",
    )  # fmt: skip


def passes_over_an_executor(patch):
    """Evaluates a query in this thread, whatever executor was given."""
    edit(patch, front, "audit", '("executor", executor)', '("executor", None)')


def passes_over_a_delta(patch):
    """Evaluates a query, whatever delta was given."""
    edit(patch, front, "audit", '("delta", delta)', '("delta", None)')


def passes_over_an_early_stop(patch):
    """Evaluates a query as often as it may, though it was to stop early."""
    edit(patch, front, "audit", "if early:\n            raise", "if False:\n            raise")


def passes_over_a_score(patch):
    """Makes a score of what has no outputs to score."""
    edit(
        patch, front, "audit", "isinstance(release, Mechanism) or isinstance(claim, Sensitivity)",
        "isinstance(release, Mechanism)",
    )  # fmt: skip


def adds_and_removes(patch):
    """Compares data sets with and without a record."""
    honest = sensitivity.probe_sensitivity

    def other_neighbours(query, space, relation, **more):
        return honest(query, space, relation=Adjacency.ADD_REMOVE, **more)

    patch.setattr(sensitivity, "probe_sensitivity", other_neighbours)


def compares_others_by_default(patch):
    """Adds and removes records where no relation is given."""
    honest = audits.probe_sensitivity

    def other_neighbours(query, space, relation=Adjacency.ADD_REMOVE, **more):
        return honest(query, space, relation, **more)

    patch.setattr(audits, "probe_sensitivity", other_neighbours)


def takes_more_for_1(patch):
    """Declares another sensitivity than 1 where none is declared."""
    honest = audits.probe_sensitivity
    patch.setattr(
        audits, "probe_sensitivity", lambda *asked, **more: honest(*asked, declared=2.0, **more)
    )


def has_another_relation(patch):
    """A new search among neighbours, which no table names."""

    def search_twice(release, relation=Adjacency.REPLACE_ONE):
        return audits.search_pairs(release, relation=relation)

    patch.setattr(audits, "search_twice", search_twice, raising=False)
    patch.setattr(audits, "__all__", [*audits.__all__, "search_twice"])


def compares_in_one_norm(patch):
    """Takes every norm for the largest entry."""
    honest = sensitivity.answer_distance
    patch.setattr(sensitivity, "answer_distance", lambda a, b, norm: honest(a, b, float("inf")))
