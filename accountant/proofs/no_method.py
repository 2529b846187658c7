"""The reason why a plan has no proof, and what to do then."""

MOST_BYTES = 1 << 20  # bytes of a proof; a longer file is not read to its end
REMEDY = (
    "the interval of Tight stands without a proof (leave out --proof, or proof=); for a proof, "
    "bound the part by a loss such as PureLoss or GaussianLoss"
)


class NoMethod(Exception):
    """No method proves a bound of a plan; its text says why."""


def without_proof(why: str) -> str:
    """Return why there is no proof, what stands without one, and what has one."""
    return f"{why}; {REMEDY}"
