"""An algorithm, or the fit of an estimator, through gates that an audit opens; what it publishes.

A gate holds private data and answers what an algorithm asks of them.  An audit opens gates that
record the answers, or give recorded ones again.  An algorithm with ``plan`` and ``run`` is given
one.  An estimator is driven by its own ``fit``, which checks and encodes the data before a gate is
opened, and keeps more than the result of ``run``.  All of that is a part of what is published.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from accountant.ledger.private_data import first_array
from accountant.plans.plan import Plan
from algorithms.base.budgets import Gates

OpenGate = Callable[[Any, Plan, Any], Any]  # of data, plan and public data
# Types of objects that take part in a fit and are no result of it: `plain` shows their names alone.
TOOLS = (Executor, np.random.Generator, FunctionType, BuiltinFunctionType, MethodType, ModuleType,
         type, type(threading.Lock()))  # fmt: skip
# Types of values that `plain` shows as they are.
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


class AuditGates(Gates):
    """Opens the gates of an audit, with noise and coins of their own."""

    def __init__(self, open_gate: OpenGate) -> None:
        self._open_gate = open_gate

    def open(
        self, data: Any, plan: Plan, *, rng: Any = None, public: Any = None, transcript: str
    ) -> Any:
        """Return the gate of the audit."""
        del rng, transcript
        return self._open_gate(data, plan, public)


def is_fitted_through_gates(algorithm: Any) -> bool:
    """Return whether an algorithm is an estimator whose ``fit`` can be driven.

    That is a ``fit`` that takes a ledger, of the class or of one that it inherits from; if the
    class replaces it, its own is driven.  An estimator whose ``fit`` takes machines is not driven
    by it: machines send votes, which the gate holds, so it is run on their votes.
    """
    owner = _owner_of_gated_fit(type(algorithm))
    if owner is None:
        return False
    _self, first_argument, *_ = inspect.signature(owner.fit).parameters
    return first_argument != "machines"


def _owner_of_gated_fit(kind: type) -> Any:
    """Return the class whose ``fit`` takes a ledger, in the order in which Python looks."""
    for owner in kind.__mro__:
        fit = vars(owner).get("fit")
        if callable(fit) and "ledger" in inspect.signature(fit).parameters:
            return owner
    return None


def run_through(algorithm: Any, data: Any, public: Any, open_gate: OpenGate, seed: int = 0) -> Any:
    """Return the result of ``run``, or a copy of an estimator after its fit.

    ``seed`` is for what a search draws itself, which does not depend on data.  A third array is the
    ``sample_weight`` of a fit that takes one.
    """
    if not is_fitted_through_gates(algorithm):
        return algorithm.run(open_gate(data, declared_plan(algorithm, data, public), public))
    model = copy.copy(algorithm)
    parameters = inspect.signature(model.fit).parameters
    takes_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if "ledger" not in parameters and not takes_any_name:
        # it could not pass the gates on to the fit that it replaces
        allowed = "an estimator whose fit takes ledger= and gives it to the fit that it replaces"
        raise ParameterError("algorithm", type(model).__name__, allowed)
    if hasattr(model, "random_state"):
        model.random_state = seed
    private = data if isinstance(data, tuple) else (data,)
    # each fit gets its own copy: what it writes into the data reaches no other fit
    fit_arguments = list(copy.deepcopy(private if public is None else (public, *private)))
    settings: dict[str, Any] = {"ledger": AuditGates(open_gate)}
    if len(fit_arguments) > 2 and "sample_weight" in parameters:
        settings["sample_weight"] = fit_arguments.pop()
    with _own_run_is_called(model):
        model.fit(*fit_arguments, **settings)
    return model


@contextlib.contextmanager
def _own_run_is_called(model: Any) -> Iterator[None]:
    """Refuse a class that replaces ``run`` alone where its ``fit`` never calls ``run``.

    A replay of that ``fit`` would say nothing of the new ``run``.  So within this context the calls
    of ``run`` are counted.
    """
    kinds = type(model).__mro__
    owner_of_run = next((kind for kind in kinds if "run" in vars(kind)), None)
    owner_of_fit = _owner_of_gated_fit(type(model))
    # A subclass comes before its bases: only a ``run`` before the ``fit`` replaces another one.
    if owner_of_run is None or kinds.index(owner_of_run) >= kinds.index(owner_of_fit):
        yield
        return
    run, calls = model.run, []

    def counted_run(*arguments: Any, **settings: Any) -> Any:
        calls.append(1)
        return run(*arguments, **settings)

    model.run = counted_run
    try:
        yield
    finally:
        del model.run
    if not calls:
        allowed = "one whose fit calls run: override fit too, or audit an object with plan and run"
        raise ParameterError("algorithm", type(model).__name__, allowed)


def declared_plan(algorithm: Any, data: Any, public: Any) -> Plan:
    """Return the plan that the algorithm declares for data of this shape."""
    plan: Plan = algorithm.plan(first_array(data if public is None else public).shape)
    return plan


def published(model: Any) -> dict[str, Any]:
    """Return what a fit shows, as a nest of numbers, strings and arrays.

    That is what a pickle of it holds, its properties that end in ``_``, and its summary.
    """
    attributes = dict(model.__getstate__())
    for name, value in inspect.getmembers_static(type(model)):
        if isinstance(value, property) and name.endswith("_") and name[0] != "_":
            attributes[name] = getattr(model, name, None)
    if hasattr(model, "summary"):
        attributes["summary()"] = model.summary()
    return {name: plain(value) for name, value in attributes.items() if name != "_spending"}


def plain(value: Any, ancestors: tuple[int, ...] = ()) -> Any:
    """Return a value as a nest of dicts, lists, numbers, strings and arrays."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, TOOLS) or id(value) in ancestors:
        return _name_of(value)
    ancestors = (*ancestors, id(value))
    if isinstance(value, np.ma.MaskedArray):
        return [plain(value.data, ancestors), np.ma.getmaskarray(value)]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return np.array(value)
    if isinstance(value, np.ndarray):
        return [list(value.shape), [plain(part, ancestors) for part in value.ravel().tolist()]]
    if isinstance(value, dict):
        return {str(key): plain(part, ancestors) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part, ancestors) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    state = value.__getstate__()
    if state is None:
        # A pickle of a deque or a Decimal holds its arguments and its items.
        reduce = copyreg.dispatch_table.get(type(value))
        with contextlib.suppress(TypeError):  # there is no pickle of some objects
            reduced = reduce(value) if reduce else value.__reduce_ex__(2)
            state = [list(part) if isinstance(part, Iterator) else part for part in reduced[1:]]
    if isinstance(state, dict):
        state = {key: part for key, part in state.items() if key != "_spending"}
    return [_name_of(value), plain(state, ancestors)]


def _name_of(value: Any) -> str:
    """The full name of a function or class, or of the class of another object."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return (
        f"{named.__module__}.{named.__qualname__}" if hasattr(named, "__module__") else str(named)
    )
