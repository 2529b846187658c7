"""Wrong replays: each forgives what an algorithm did on one of two neighbours alone."""

from audits.algorithm_runs import recording, replay_gate
from audits.algorithm_runs.recording import RecordingLedger
from audits.algorithm_runs.replay_gate import ReplayGate
from tests.mutants.edits import edit


def forgives_refusals(patch):
    """Looks at answered requests alone."""
    for gate in (RecordingLedger, ReplayGate):
        patch.setattr(gate, "_keep_refusal", lambda self, error, mechanism, who: None)


def forgives_refusals_of_the_plan(patch):
    """Keeps what is no request at all, and not what the plan refuses."""
    edit(patch, recording.GateWithRefusals, "_refusals_kept", "(OffPlan, ", "(")


def forgives_refusals_that_are_missing(patch):
    """Does not ask at the end whether all recorded refusals came."""
    edit(patch, ReplayGate, "finish", "self._refused < len(self._refusals)", "False")


def compares_places_of_refusals_alone(patch):
    """Takes any refused request for any other."""
    patch.setattr(replay_gate, "same_refusal", lambda one, other: True)


def calls_every_refusal_another(patch):
    """Convicts an algorithm that is refused the same on all data."""
    patch.setattr(replay_gate, "same_refusal", lambda one, other: False)


def forgives_two_users(patch):
    """Begins to count users at the third."""
    edit(
        patch, ReplayGate, "_add_local_loss",
        "len(self._changed_users) > 1", "len(self._changed_users) > 2",
    )  # fmt: skip


def counts_users_of_one_release(patch):
    """Forgets between two releases which user has changed."""
    edit(patch, ReplayGate, "_add_local_loss", "_changed_users.update(", "_changed_users = set(")


def takes_a_sample_for_public(patch):
    """Compares densities as if the record were in the sample for sure."""
    edit(patch, replay_gate, "_log_mixture", "log_outside + np.log1p(-rate)", "-np.inf")


def leaves_samples_unknown(patch):
    """Gives up where a sample is secret."""
    edit(patch, ReplayGate, "_add_sampled_loss", "changed.size > 1", "True")


def takes_a_replaced_record_for_an_added_one(patch):
    """Does not ask whether a record adds nothing on one side."""
    patch.setattr(replay_gate, "_adds_nothing", lambda one, other: True)
