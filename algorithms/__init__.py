"""Compositions of mechanisms: a plan made from shapes, and a run through the gate."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from algorithms.private_lasso import PrivateLasso

__all__ = ["PrivateLasso"]


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import, so an estimator is loaded when it is asked for
    if name in __all__:
        from algorithms import private_lasso

        return getattr(private_lasso, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
