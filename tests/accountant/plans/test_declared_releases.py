"""Declared classes are final, and otherwise classes like any other."""

import dataclasses
from typing import Generic, TypeVar

import numpy as np
import pytest

from accountant import Budget, Filter, ParameterError
from accountant.plans.declared_releases import DECLARED_RELEASES, declare_release
from mechanisms import Laplace, declare, registry

T = TypeVar("T")


def test_what_a_base_does_with_its_subclasses_still_happens():
    made = []

    class Base:
        def __init_subclass__(cls, **options):
            made.append((cls.__name__, options))

    @declare_release
    @dataclasses.dataclass(frozen=True)
    class OnlyForThisTest(Base):
        size: float = 1.0

    try:

        class Named(OnlyForThisTest, colour="red"):
            """Changes nothing."""
    finally:
        del DECLARED_RELEASES[id(OnlyForThisTest)]
    assert made == [("OnlyForThisTest", {}), ("Named", {"colour": "red"})]
    assert Named().size == 1.0


def test_a_class_that_is_declared_again_stays_whole():
    before, registered = dict(vars(Laplace)), registry()
    assert declare(Laplace) is Laplace
    assert dict(vars(Laplace)) == before
    assert registry() == registered
    assert Filter(np.arange(6.0), Budget(1.0), rng=1).release(Laplace(20.0), np.sum) is not None

    dataclass_before = dataclasses.dataclass(frozen=True)(type("Written", (), {}))
    with pytest.raises(ParameterError, match="no dataclass yet"):
        declare(dataclass_before)
    assert registry() == registered


def test_a_subclass_may_have_what_every_class_body_has():
    class Documented(Laplace):
        """Laplace noise under another name."""

        __slots__ = ()
        unit: str

    class Held(Laplace, Generic[T]):
        __slots__ = ("__weakref__",)

    for cls in (Documented, Held):
        assert cls(2.0).loss == Laplace(2.0).loss


@pytest.mark.parametrize(
    "name", ["release", "loss", "log_density", "scale", "__eq__", "__hash__", "__init__",
             "__getattribute__", "__reduce__", "__class__"]
)  # fmt: skip
def test_a_subclass_may_change_nothing(name):
    with pytest.raises(TypeError, match=rf"Changed overrides .*{name}\b.* of Laplace"):
        type("Changed", (Laplace,), {"__slots__": (), name: property(lambda self: 1.0)})
