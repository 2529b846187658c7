"""Declared classes are final, and otherwise classes like any other."""

import dataclasses

from accountant.plans.declared_releases import DECLARED_RELEASES, declare_release


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
