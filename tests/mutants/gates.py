"""Wrong gates: monkeypatches that take one check away."""

import numpy as np

from accountant.ledger import (
    block_answers,
    gate,
    immutable_arrays,
    interfaces,
    ledger,
    private_copies,
    totals,
)
from accountant.ledger import private_data as data
from accountant.plans import declared_releases
from audits.algorithm_runs import differences, replaying

HONEST_CHECK = data.checked_data
HONEST_VALUES, HONEST_ARRAYS = differences._difference_of_values, differences._array_difference


def subclasses_override(patch):
    """Lets a subclass say what a declared class does."""
    patch.setattr(
        declared_releases._refuse_overriding, "__code__", (lambda cls, **_: None).__code__
    )


def takes_what_it_calls_itself(patch):
    """Takes a mechanism as it is, of any class."""
    patch.setattr(private_copies.PrivateCopies, "of", lambda self, mechanism: mechanism)


def names_no_class(patch):
    """Releases what is not declared, and does not say so."""
    patch.setattr(private_copies.PrivateCopies, "undeclared_class", lambda self, mechanism: "")


def remembers_costs_by_equality(patch):
    """Looks a cost up by what a mechanism says of equality."""

    def charge(self, total, release):
        costs = self._costs
        if release not in costs:
            costs[release] = self.cost(release)
        return self.add(total, costs[release])

    patch.setattr(totals.CompositionNotion, "charge", charge)


def draws_from_what_was_asked(patch):
    """Checks the class of a mechanism and draws from the author's object."""
    patch.setattr(private_copies, "shown", lambda made: made)


def hands_out_its_own_copies(patch):
    """Shows the very objects that it draws from."""
    for module in (gate, ledger):
        patch.setattr(module, "shown", lambda made: made)


def sets_a_flag(patch):
    """Makes answers and data read-only by a flag, which can be set back."""

    def flagged(array, mapped=False):
        del mapped
        view = np.asarray(array).view()
        view.flags.writeable = False
        return view

    for module in (immutable_arrays, data):
        patch.setattr(module, "immutable", flagged)


def hands_out_the_recorded_answer(patch):
    """Returns the very array that the transcript keeps, whose shape can be set."""
    patch.setattr(ledger, "fresh_view", lambda output: output)


def takes_any_output(patch):
    """Stores what workers return, whatever it is."""
    patch.setattr(ledger, "refuse_impossible_outputs", lambda mechanism, outputs, users: None)


def asks_the_mechanism_alone(patch):
    """Takes as many outputs as workers return, where the class says nothing of them."""

    def refuse(mechanism, outputs, users):
        if getattr(mechanism, "outputs_fault", None) is not None:
            block_answers.refuse_impossible_outputs(mechanism, outputs, users)

    patch.setattr(ledger, "refuse_impossible_outputs", refuse)


def hands_its_copy_to_workers(patch):
    """Gives workers the very object that it draws from."""
    patch.setattr(ledger, "shown", lambda made: made)


def names_no_workers(patch):
    """Takes any executor for its own."""
    patch.setattr(gate, "class_name", lambda executor: "")


def ignores_masks(patch):
    """Reads what a mask hides."""
    for module in (data, interfaces):
        patch.setattr(module, "is_masked", lambda given: False)


def looks_at_floats_alone(patch):
    """Lets dates and records pass without a look."""
    honest = data._refuse_missing

    def floats_alone(argument, array):
        if array.dtype.kind in "fc":
            honest(argument, array)

    patch.setattr(data, "_refuse_missing", floats_alone)


def trusts_an_attribute(patch):
    """Takes data for checked that say they are."""

    def checked(argument, given):
        return given if hasattr(given, "checked_as_read") else HONEST_CHECK(argument, given)

    patch.setattr(gate, "checked_data", checked)


def shows_the_query(patch):
    """Names in a message what was passed as the query."""

    def shown(argument, allowed):
        return gate.ParameterError(argument, 45.25, allowed)

    patch.setattr(gate, "PrivateValueError", shown)


def ignores_attributes(patch):
    """Does not look at what a subclass keeps beside its value."""
    patch.setattr(differences, "_difference_of_attributes", lambda one, other: "")


def ignores_order_and_masks(patch):
    """Compares the entries of a dict by their keys, and masked arrays as plain ones."""

    def unordered(one, other):
        if isinstance(one, dict):
            return next(filter(None, (HONEST_VALUES(one[key], other[key]) for key in one)), "")
        return HONEST_VALUES(np.asarray(one), np.asarray(other))

    patch.setattr(differences, "_difference_of_values", unordered)


def compares_numbers(patch):
    """Compares what is equal as a number, not bit by bit."""

    def as_numbers(a, b):
        return "" if np.array_equal(a, b) else HONEST_ARRAYS(a, b)

    patch.setattr(differences, "_array_difference", as_numbers)


def forgets_the_loss(patch):
    """Calls a run sound that lost more than its plan allows."""
    patch.setattr(replaying, "largest_loss_of", lambda plan: float("inf"))


def compares_one_array_with_itself(patch):
    """Keeps the array that the next run fills."""
    patch.setattr(replaying.copy, "deepcopy", lambda result: result)
