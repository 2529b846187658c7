"""Wrong costs of removed records of passes: each takes a monkeypatch."""

from accountant.training import schemes
from accountant.training.passes import ordered_removal_squares
from tests.mutants.edits import edit


def removal_as_a_blank(patch):
    """Takes a removed record of a shuffled pass for one that is blanked."""
    patch.setattr(schemes, "shuffled_removal_squares", lambda run, size=1: size**2)


def last_batch_of_as_many(patch):
    """Forgets that the last batch of a shuffled pass loses a record."""
    edit(patch, schemes, "shuffled_removal", "clips=1", "clips=1e-9")


def place_left_empty(patch):
    """Forgets that another record takes the place of the removed one in its batch."""
    edit(patch, schemes, "_in_random_batch", "clips=2", "clips=1")


def places_of_the_data_without_it(patch):
    """Takes the record's places for fewer ones: those of a pass with two records more."""
    edit(patch, schemes, "_in_random_batch", "run.examples", "(run.examples + 2)")


def a_batch_more_to_hide_in(patch):
    """Lets the record hide in a batch that a pass does not have."""
    edit(
        patch, schemes, "_in_random_batch",
        "RandomAllocation(gaussian(noise, clips=2), batches)",
        "RandomAllocation(gaussian(noise, clips=2), batches + 1)",
    )  # fmt: skip


def order_without_a_shift(patch):
    """Lets the last record take the place of the removed one, in a fixed order too."""
    patch.setattr(schemes, "ordered_removal_squares", lambda run, size=1: 5 * size**2)


def order_whose_last_batch_is_full(patch):
    """Takes the last batch of a fixed order for one that another record enters."""
    patch.setattr(
        schemes, "ordered_removal_squares",
        lambda run, size=1: ordered_removal_squares(run, size) + 3 * (not run.dropped),
    )  # fmt: skip


def as_many_batches(patch):
    """Forgets that a pass without the record may have a batch less."""
    patch.setattr(schemes, "removal_takes_a_batch", lambda run, size=1: False)


def dropped_records_stay_out(patch):
    """Forgets that a record that was left out takes the place of a removed one."""
    edit(patch, schemes, "ordered_removal", "ordered_removal_squares(run, size)", "1 + 0 * size")


def exchange_that_leaves_no_record(patch):
    """Takes a replaced record for one that comes to no batch of its own."""
    edit(patch, schemes, "grouped_exchange", "clips=2", "clips=0.4")


def lower_end_of_a_longer_record(patch):
    """Takes a lower end from a record longer than the clipping norm."""
    edit(
        patch, schemes, "_least_shuffled", "gaussian(noise, clips)", "gaussian(noise, 1.05 * clips)"
    )


MUTANTS = (
    removal_as_a_blank, last_batch_of_as_many, place_left_empty, places_of_the_data_without_it,
    a_batch_more_to_hide_in, order_without_a_shift, order_whose_last_batch_is_full,
    as_many_batches, dropped_records_stay_out, exchange_that_leaves_no_record,
    lower_end_of_a_longer_record,
)  # fmt: skip
