"""Wrong neighbours: pairs that are none, and kinds of neighbours that are not tried."""

from audits.neighbours import adjacent_chains
from audits.neighbours.value_spaces import Box
from tests.mutants.edits import edit


def replaces_the_only_record(patch):
    """Exchanges a record where one is added or removed."""
    edit(
        patch, adjacent_chains, "random_neighbour", "relation is Adjacency.ADD_REMOVE",
        "relation is Adjacency.ADD_REMOVE and len(value) > 1",
    )  # fmt: skip


def removes_a_replaced_record(patch):
    """Removes a record where one is exchanged."""
    edit(
        patch, adjacent_chains, "random_neighbour", "relation is Adjacency.ADD_REMOVE", "True",
    )  # fmt: skip


def moves_out_of_the_box(patch):
    """Moves answers beyond what they can be."""
    edit(patch, adjacent_chains, "random_neighbour", "space.array(value + steps)", "value + steps")


def moves_by_two(patch):
    """Moves answers by more than one."""
    edit(patch, adjacent_chains, "random_neighbour", "value + steps", "value + 2 * steps")


def adds_a_hostile_record_twice(patch):
    """Adds a hostile record and takes none away."""
    edit(patch, adjacent_chains, "_neighbour_steps", "relation is Adjacency.ADD_REMOVE", "True")


def exchanges_a_hostile_record(patch):
    """Exchanges a record for a hostile one where it is added."""
    edit(patch, adjacent_chains, "_neighbour_steps", "relation is Adjacency.ADD_REMOVE", "False")


def takes_two_stairs_at_once(patch):
    """Changes all records that come behind."""
    edit(
        patch,
        adjacent_chains,
        "_staircase",
        "data[row] = all_high[row]",
        "data[row:] = all_high[row:]",
    )


def reorders_what_has_an_order(patch):
    """Takes data in another order for the same data, whatever was said."""
    edit(patch, adjacent_chains, "adjacent_chains", "not (ordered or is_vector)", "not is_vector")


def keeps_every_order(patch):
    """Never tries another order."""
    patch.setattr(adjacent_chains, "_reordered", lambda value, rng: ())


def never_empties_the_data(patch):
    """Stops at one record."""
    edit(patch, adjacent_chains, "_shrinking_sizes", "len(value), -1, -1", "len(value), 0, -1")


def hostile_whole_numbers(patch):
    """Puts NaN among whole numbers."""
    edit(patch, adjacent_chains, "_neighbour_steps", "hostile and not box.whole", "hostile")


def box_of_nothing(patch):
    """Looks for the ends of data without records."""
    edit(patch, adjacent_chains, "bounding_box", " or data.size == 0", "")


def box_of_twice_the_width(patch):
    """Takes numbers that are not there for ends."""
    edit(patch, adjacent_chains, "bounding_box", "low + 1.0", "low + 2.0")


def box_of_any_size(patch):
    """Takes any shape, and any ends."""
    patch.setattr(Box, "__post_init__", lambda self: None)
