"""Ball arithmetic that the theorems share, and the budget of a check.

A ball of Arb (`arb`, or `acb` for complex numbers) is a midpoint and a radius, which contain the
true number: a comparison of balls holds only where it holds for all numbers in them.  The numbers
of a proof file may ask for any amount of work, so that a check has a budget.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flint import acb, acb_mat, arb, ctx

from .document import need


class Budget:
    """What a check may still take, in about the time of a product of numbers of 128 bits."""

    remaining: ClassVar[float] = 0.0


def spend(products: float) -> None:
    """Refuse what takes too long before it starts; products of more bits take longer."""
    Budget.remaining -= products * max(1, ctx.prec / 128) ** 1.5
    need(Budget.remaining > 0, "the check would take too long")


def exact(value: Any) -> arb:
    """Return the ball of a fraction."""
    return value if isinstance(value, arb) else arb(value.numerator) / arb(value.denominator)


def floor_below(value: arb) -> int:
    """Return the largest whole number that is surely at most a ball."""
    floor = value.lower().floor().unique_fmpz()
    need(floor is not None, "a number is not known well enough")
    return int(floor or 0)


def share_within_one(share: arb) -> arb:
    """Return the number in [0, 1] that is nearest to an exact one."""
    return share.max(arb(0)).min(arb(1))


def normal_tail(x: arb) -> arb:
    """Return P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def nodes_on_line(a: float, h: float, count: int) -> list[acb]:
    """Return a + ijh for j < count."""
    return [acb(arb(a), arb(h) * j) for j in range(count)]


def exponential_sums(weights: list[Any], losses: list[Any], h: float, count: int) -> list[acb]:
    """Return sum_k w_k e^{ijh L_k} for j < count.

    With j = r + m s, r < m, a term is e^{irh L_k} times w_k e^{imsh L_k}: all sums are one product
    of a matrix with rows r and one with columns s, of about 2 sqrt(count) exponentials for each k.
    """
    terms, m = len(losses), max(1, int(count**0.5))
    columns = -(-count // m)
    spend(terms * count / 8 + 20 * count + 20 * m * terms)
    turns = [loss * acb(0, arb(h)) for loss in losses]
    fine = acb_mat(m, terms, [(turn * r).exp() for r in range(m) for turn in turns])
    coarse = acb_mat(
        terms,
        columns,
        [
            weight * (turn * (m * s)).exp()
            for weight, turn in zip(weights, turns, strict=True)
            for s in range(columns)
        ],
    )
    product = (fine * coarse).tolist()
    return [product[j % m][j // m] for j in range(count)]
