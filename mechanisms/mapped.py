"""Any function of what a mechanism with finitely many outputs releases."""

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
from mechanisms.base.mechanism import sum_log_density
from mechanisms.base.parameters import declare, param
from mechanisms.base.supports import Cells, Support
from mechanisms.families.post_processing import MechanismsWithAttribute, PostProcessing
from mechanisms.randomized_response import RandomizedResponse


@dataclass(frozen=True, slots=True)
class ElementwiseFunctions:
    """Functions of an array, elementwise."""

    def check(self, argument: str, value: object) -> Callable[[Any], Any]:
        """The function itself."""
        if not callable(value):
            raise ParameterError(argument, value, str(self))
        return value

    def __str__(self) -> str:
        return "a function that maps an array of outputs to as many numbers"


@final
@declare
class Mapped(PostProcessing):
    """``function`` of what ``inner`` releases; the function sees no data and draws nothing.

    A density is known where the inner mechanism releases labels or other numbers that can be
    listed; audits of others take the inner mechanism.
    """

    releases: ClassVar[str] = "a function of another release"
    reference: ClassVar[str] = "Dwork & Roth (2014), Proposition 2.1"

    inner: Any = param(
        MechanismsWithAttribute("release", "a mechanism"), "releases what the function gets",
        typical=(RandomizedResponse(4, 0.4753668864186717),),
    )  # fmt: skip
    function: Callable[[Any], Any] = param(
        ElementwiseFunctions(), "applied to outputs", typical=(np.sign,)
    )

    def release(self, value: ArrayLike, rng: Rng = None, size: int | None = None) -> Any:
        """Release and apply the function; see `Mechanism.release`."""
        released = self.inner.release(value, rng, size)
        made = self.function(released)
        if np.shape(made) != np.shape(released):
            shapes = f"{np.shape(released)} to {np.shape(made)}"
            raise ParameterError(
                "function", f"one that maps shape {shapes}", str(ElementwiseFunctions())
            )
        return made

    def log_density(self, output: ArrayLike, value: ArrayLike, each: bool = False) -> Array:
        """Sum over all inner outputs that the function maps to ``output``."""
        values = np.asarray(value)
        told = np.asarray(output)
        terms = np.empty(np.broadcast_shapes(told.shape, values.shape))
        for one in np.unique(values):
            images, log_mass = self._image_distribution(one.item())
            at = np.minimum(np.searchsorted(images, told), images.size - 1)
            same = np.isclose(images[at], told, rtol=0, atol=0, equal_nan=True)
            found = np.where(same, log_mass[at], -np.inf)
            terms = np.where(values == one, found, terms)
        return sum_log_density(terms, values.ndim, each)

    @property
    def support(self) -> Support:
        """The images of the inner outputs."""
        return ImageSupport(self)

    def _image_distribution(self, value: Any) -> tuple[NDArray[Any], Array]:
        """Different images and the logarithms of their masses."""
        cells = self.inner.support.cells(value, value)
        if cells is None or cells.parts is not None or self.inner.values.axes != 0:
            allowed = "a mechanism whose value is a label and whose outputs can be listed"
            raise ParameterError("inner", self.inner, f"{allowed}, for a density to be known")
        images, back = np.unique(self.function(cells.outputs), return_inverse=True)
        log_terms = self.inner.log_density(cells.outputs, value) + np.log(cells.measure)
        inside = np.where(back == np.arange(images.size)[:, None], log_terms, -np.inf)
        return images, logsumexp(inside)


@dataclass(frozen=True, slots=True)
class ImageSupport(Support):
    """What a function makes of the outputs of another mechanism."""

    mechanism: Mapped

    def cells(self, first: Any, second: Any) -> Cells:
        """Every image."""
        images = np.union1d(
            self.mechanism._image_distribution(first)[0],  # noqa: SLF001
            self.mechanism._image_distribution(second)[0],  # noqa: SLF001
        )  # its own support
        return Cells(images, np.ones(images.size), lambda output: np.searchsorted(images, output))
