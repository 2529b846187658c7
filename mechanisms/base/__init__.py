"""What every mechanism is made of: the abstract class, declared parameters, values, supports.

Behind it stands the definition of differential privacy: a sampler, its density on neighbouring
values, and the privacy loss between them (Dwork & Roth 2014, Chapters 2 and 3).  Mechanism
files, `mechanisms.families` and the packages above import this room; it imports the accountant
and no family.
"""

from mechanisms.base.mechanism import (
    EXACT,
    IDEALISED,
    Arithmetic,
    Mechanism,
    arithmetic_field,
    draw_shape,
    sum_log_density,
)
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import (
    Candidates,
    Cells,
    FiniteRows,
    Labels,
    Lattice,
    RealLine,
    Support,
    bit_rows,
)
from mechanisms.base.values import (
    Ball,
    BoundedNumbers,
    Categories,
    Integers,
    Reals,
    Scores,
    Values,
    finite_floats,
    norms,
    refuse_size_for_batch,
)

__all__ = [
    "EXACT",
    "IDEALISED",
    "Arithmetic",
    "Ball",
    "BoundedNumbers",
    "Candidates",
    "Categories",
    "Cells",
    "FiniteRows",
    "Integers",
    "Labels",
    "Lattice",
    "Mechanism",
    "RealLine",
    "Reals",
    "Scores",
    "Support",
    "Values",
    "arithmetic_field",
    "bit_rows",
    "declare",
    "draw_shape",
    "finite_floats",
    "norms",
    "param",
    "refuse_size_for_batch",
    "sum_log_density",
]
