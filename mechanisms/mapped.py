"""Any function of the release of another mechanism, the *inner* one, which costs no more than it.

References: Dwork & Roth (2014), Proposition 2.1 (post-processing).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.numerics.logspace import logsumexp
from accountant.randomness import Rng
from mechanisms.base import Cells, Support, declare, param, sum_log_density
from mechanisms.base.mechanism import all_possible
from mechanisms.families.post_processing import MechanismsWithAttribute, PostProcessing
from mechanisms.randomized_response import RandomizedResponse


@dataclass(frozen=True, slots=True)
class ElementwiseFunctions:
    """Functions that act on the entries of an array, as a domain."""

    def check(self, argument: str, value: object) -> Callable[[Any], Any]:
        """Return the function, or raise `ParameterError`."""
        if not callable(value):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        return "a function that maps an array of outputs to as many numbers"


@final
@declare
class Mapped(PostProcessing):
    """The value of ``function`` at the release of ``inner``; the function sees no data.

    The function draws nothing.  A density is known where the inner mechanism releases labels or
    other numbers that can be listed; otherwise audit the inner mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from mechanisms import Mapped, RandomizedResponse
    >>> is_not_label_0 = Mapped(RandomizedResponse(k=4, keep=0.7), np.sign)
    >>> is_not_label_0.release([0, 3, 2], rng=0).tolist()
    [1, 1, 1]
    >>> is_not_label_0.loss == is_not_label_0.inner.loss
    True
    """

    releases: ClassVar[str] = "a function of another release"
    reference: ClassVar[str] = "Dwork & Roth (2014), Proposition 2.1"

    inner: Any = param(
        MechanismsWithAttribute("release", "a mechanism"),
        "mechanism whose release is the argument of the function",
        typical=(RandomizedResponse(4, 0.4753668864186717),),
    )
    function: Callable[[Any], Any] = param(
        ElementwiseFunctions(),
        "function of an array of outputs, entry by entry",
        typical=(np.sign,),
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Return the function of the inner release; see `Mechanism.release`."""
        released = self.inner.release(value, rng, size)
        image = self.function(released)
        if np.shape(image) != np.shape(released):
            shapes = f"{np.shape(released)} to {np.shape(image)}"
            raise ParameterError(
                "function", f"one that maps shape {shapes}", str(ElementwiseFunctions())
            )
        return image

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Return the sum over all inner outputs that the function maps to ``output``."""
        values = np.asarray(value)
        reported = np.asarray(output)
        terms = np.empty(np.broadcast_shapes(reported.shape, values.shape))
        labels = values.ravel() if values.dtype == object else np.unique(values)
        for label in labels.tolist():
            images, log_mass = image_distribution(self, label)
            index = np.minimum(np.searchsorted(images, reported), images.size - 1)
            # This is equality, where NaN equals itself: a function may map to it.
            is_image = np.isclose(images[index], reported, rtol=0, atol=0, equal_nan=True)
            log_probability = np.where(is_image, log_mass[index], -np.inf)
            terms = np.where(values == label, log_probability, terms)
        return sum_log_density(terms, values.ndim, each)

    def _may_release(self, outputs: NDArray[Any], values: NDArray[Any]) -> bool:
        try:
            return all_possible(self, outputs, values[0])
        except ParameterError:  # the inner outputs cannot be listed
            return True

    @property
    def support(self) -> Support:
        """The images of the inner outputs."""
        return ImageSupport(self)


@dataclass(frozen=True, slots=True)
class ImageSupport(Support):
    """The images of the outputs of another mechanism under a function."""

    mechanism: Mapped

    def cells(self, first: Any, second: Any) -> Cells:
        """Return one cell for every image."""
        images = np.union1d(
            image_distribution(self.mechanism, first)[0],
            image_distribution(self.mechanism, second)[0],
        )
        return Cells(images, np.ones(images.size), lambda output: np.searchsorted(images, output))


def image_distribution(mechanism: Mapped, value: Any) -> tuple[NDArray[Any], Array]:
    """Return the images of the inner outputs, and the logarithms of their probabilities."""
    is_label = mechanism.inner.values.axes == 0 and np.asarray(value).dtype != object
    cells = mechanism.inner.support.cells(value, value) if is_label else None
    # The function sees one output of a cell, so a cell has to be one number, and no part of many.
    if cells is None or cells.parts is not None or cells.outputs.ndim != 1:
        allowed = (
            "a mechanism whose value is a label and whose outputs are numbers that can be listed"
        )
        raise ParameterError("inner", mechanism.inner, f"{allowed}, for a density to be known")
    images, image_index = np.unique(mechanism.function(cells.outputs), return_inverse=True)
    log_terms = mechanism.inner.log_density(cells.outputs, value) + np.log(cells.measure)
    inside = np.where(image_index == np.arange(images.size)[:, None], log_terms, -np.inf)
    return images, logsumexp(inside)
