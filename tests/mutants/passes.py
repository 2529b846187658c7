"""Wrong costs of removed records of passes: each takes a monkeypatch."""

from accountant.training import schemes
from accountant.training.passes import ordered_removal_squares, removal_pair
from tests.mutants.edits import edit


def removal_as_a_blank(patch):
    """Takes a removed record of a shuffled pass for one that is blanked."""
    patch.setattr(schemes, "shuffled_removal_squares", lambda run, size=1: size**2)


def removal_as_an_exchange(patch):
    """Forgets that the last batch of a shuffled pass loses a record."""
    patch.setattr(schemes, "shuffled_removal_squares", lambda run, size=1: 4 * size**2)


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


def pair_of_a_longer_record(patch):
    """Takes the lower end from a record longer than the clipping norm."""
    patch.setattr(
        schemes, "removal_pair", lambda mu, batches, last: removal_pair(1.05 * mu, batches, last)
    )


MUTANTS = (
    removal_as_a_blank, removal_as_an_exchange, order_without_a_shift,
    order_whose_last_batch_is_full, as_many_batches, dropped_records_stay_out,
    pair_of_a_longer_record,
)  # fmt: skip
