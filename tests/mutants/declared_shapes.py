"""Wrong gates: the shape of a release follows the data."""

from accountant.ledger import gate, interfaces
from tests.mutants.edits import edit


def any_shape_passes(patch):
    """What a query gives is released, whatever its shape."""
    edit(patch, interfaces.ShapedQuery, "value", "users is None and shown != self.shape", "False")


def any_length_of_a_user_passes(patch):
    """Of a value a user the number of users alone is checked."""
    edit(
        patch, interfaces.ShapedQuery, "value", "shown != (users, *self.shape)",
        "shown[:1] != (users,)",
    )  # fmt: skip


def the_message_says_the_shape(patch):
    """The refusal names the shape that the query gave."""
    edit(patch, interfaces.ShapedQuery, "value", "of shape {self.shape}, as", "not {shown}, as")


def candidates_need_no_shape(patch):
    """A selection takes as many candidates as the query gives."""

    def shaped_query(mechanism, query, shape):
        return interfaces.shaped_query(mechanism, query, () if shape is None else shape)

    patch.setattr(gate, "shaped_query", shaped_query)
    edit(patch, interfaces.ShapedQuery, "value", "users is None and shown", "self.shape and shown")
    edit(patch, interfaces, "shaped_query", "len(checked) != axes - hidden", "False")


MUTANTS = [
    any_shape_passes,
    any_length_of_a_user_passes,
    the_message_says_the_shape,
    candidates_need_no_shape,
]
