"""Plans from what Flower's accountant composed, checked against the strategy that drew clients.

Flower is not imported: its types are known by their fields.  A record is a client here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.sampling_without_replacement import SampledWithoutReplacement
from accountant.domains import POSITIVE, IntegerRange, OneOf, OrNone
from accountant.errors import ParameterError
from accountant.formats.dp_events import from_dp_event
from accountant.losses.gaussian import GaussianLoss
from accountant.plans.adjacency import Adjacency
from accountant.plans.parallel import Stated
from accountant.plans.plan import Plan, Repeat, Sequential

COUNT = IntegerRange(1)
# The ways in which clients are drawn, by Flower's names, with the neighbours for which Flower's
# accountant states each of them.  Without amplification `_plan_of_round` states other neighbours.
METHODS = {
    "poisson": Adjacency.ADD_REMOVE,
    "no-amplification": Adjacency.ADD_REMOVE,
    "without-replacement": Adjacency.REPLACE_ONE,
}
# what a refused history should have been
FORMS = "an accountant of Flower or its state_dict(), or a list of its events or of DpEvents"
# The class of Flower whose configure_train takes a fixed number of clients at random.
DRAWS_FIXED = "FedAvg"


class _Round(NamedTuple):
    """An event of Flower: what its accountant notes of one round."""

    noise: float  # the noise multiplier: deviation of the noise over the clipping norm
    sample: int  # how many clients were drawn
    population: int  # from how many


CountedRounds = list[tuple[_Round, int]]  # each event, and how often it was composed


def from_flower(
    history: Any,
    strategy: Any = None,
    *,
    sampling: str | None = None,
    relation: str = Adjacency.ADD_REMOVE,
) -> Plan:
    """Return the plan of what Flower's accountant composed.

    Parameters
    ----------
    history : object
        An accountant of Flower, its ``state_dict()``, a list of its `GaussianPrivacyEvent`, or a
        list of dp-accounting's events.
    strategy : flwr.serverapp.strategy.Strategy, optional
        The strategy that ran: its noise and its number of clients must be those of the history, and
        it must draw clients in the way that was counted.  Events of dp-accounting are not compared.
    sampling : str, optional
        "poisson", "without-replacement" or "no-amplification", of a list of Flower's events.
    relation : str
        "add-remove", "zero-out" or "replace-one", of a list of dp-accounting's events.

    Returns
    -------
    Plan
        For add-remove neighbours; for replace-one ones where clients are drawn without replacement;
        for zero-out ones, a client that sends nothing, without amplification.

    Raises
    ------
    ParameterError
        If the history is not one, or the strategy did otherwise: the message says what to change.

    Examples
    --------
    >>> from accountant import from_flower
    >>> event = dict(noise_multiplier=1.0, sample_size=10, population_size=100)
    >>> from_flower([event, event], sampling="poisson").parts[0].count
    2
    """
    recorded = history.state_dict() if hasattr(history, "state_dict") else history
    method = OrNone(OneOf(tuple(METHODS))).check("sampling", sampling)
    if isinstance(recorded, Mapping):
        rounds, method = _rounds_of_state(recorded)
    else:
        if isinstance(recorded, (str, bytes)) or not isinstance(recorded, Iterable):
            raise ParameterError("history", type(history).__name__, FORMS)
        entries = list(recorded)
        if entries and all(type(entry).__name__.endswith("DpEvent") for entry in entries):
            return Sequential(from_dp_event(entry, relation) for entry in entries)
        rounds = [(_round(entry), 1) for entry in entries]
        if method is None and rounds:
            raise ParameterError("sampling", None, f"one of {', '.join(map(repr, METHODS))}")
    if strategy is not None:
        _check_strategy(rounds, str(method), strategy)
    parts = [(_plan_of_round(event, str(method)), count) for event, count in rounds]
    # Equal rounds that follow each other are one part with a count.
    return Sequential(
        Repeat(part, sum(count for _, count in equal_parts))
        for part, equal_parts in groupby(parts, key=lambda part_and_count: part_and_count[0])
    )


def _rounds_of_state(state: Mapping[str, Any]) -> tuple[CountedRounds, str]:
    """Return the events of a `state_dict` with their counts, and the name of the sampling."""
    config, compositions = state.get("config"), state.get("compositions")
    if not isinstance(config, Mapping) or not isinstance(compositions, (list, tuple)):
        raise ParameterError("history", sorted(map(str, state)), FORMS)
    if state.get("schema_version", 1) != 1:
        raise ParameterError("schema_version", state["schema_version"], "1, the one known here")
    method = OneOf(tuple(METHODS)).check("sampling_method", config.get("sampling_method"))
    population = COUNT.check("population_size", config.get("population_size"))
    named = {"add-remove": "add-or-remove-one", "replace-one": "replace-one"}[METHODS[method]]
    if config.get("neighboring_relation", named) != named:
        allowed = f"{named!r} for {method!r}"
        raise ParameterError("neighboring_relation", config["neighboring_relation"], allowed)
    rounds = []
    for composition in compositions:
        if not isinstance(composition, Mapping) or "event" not in composition:
            raise ParameterError("compositions", composition, "a list of events with their counts")
        event = _round(composition["event"])
        if event.population != population:
            allowed = f"{population:,}, as the config says"
            raise ParameterError("population_size", event.population, allowed)
        rounds.append((event, COUNT.check("count", composition.get("count"))))
    return rounds, method


def _round(event: Any) -> _Round:
    """Return an event of Flower, checked."""
    values = {
        name: event.get(name) if isinstance(event, Mapping) else getattr(event, name, None)
        for name in ("noise_multiplier", "sample_size", "population_size")
    }
    if all(value is None for value in values.values()):
        raise ParameterError("history", type(event).__name__, FORMS)
    noise = POSITIVE.check("noise_multiplier", values["noise_multiplier"])
    population = COUNT.check("population_size", values["population_size"])
    sample = IntegerRange(1, population).check("sample_size", values["sample_size"])
    return _Round(noise, sample, population)


def _plan_of_round(event: _Round, method: str) -> Plan:
    if method == "poisson":
        return PoissonSampled(GaussianLoss(1 / event.noise), event.sample / event.population)
    if method == "no-amplification":
        # Flower says add-or-remove.  But the number of clients is fixed, and another client
        # replaces a removed one, so this is the cost of a client that sends nothing.
        return Stated(GaussianLoss(1 / event.noise), Adjacency.ZERO_OUT)
    # One client in the place of another moves the sum by up to two clipping lengths.
    return SampledWithoutReplacement(GaussianLoss(2 / event.noise), event.sample, event.population)


def _check_strategy(rounds: CountedRounds, method: str, strategy: Any) -> None:
    """Refuse a strategy that drew or noised otherwise than the events say."""
    noise = getattr(strategy, "noise_multiplier", None)
    clients = getattr(strategy, "num_sampled_clients", None)
    if noise is None or clients is None:
        allowed = "one that adds noise, such as DifferentialPrivacyServerSideFixedClipping"
        raise ParameterError("strategy", type(strategy).__name__, allowed)
    noise, clients = POSITIVE.check("noise_multiplier", noise), COUNT.check("clients", clients)
    noises = sorted({event.noise for event, _ in rounds})
    sizes = sorted({event.sample for event, _ in rounds})
    why = [
        f"noise {counted:g} is counted and {noise:g} is added: count what is added"
        for counted in noises
        if not math.isclose(counted, noise, rel_tol=1e-9)
    ]
    why += [
        f"{counted:,} clients a round are counted and noise is for {clients:,}: set both to the "
        "number that is drawn"
        for counted in sizes
        if counted != clients
    ]
    if method == "poisson" and _draws_fixed_number(strategy):
        why.append(
            "Poisson samples are counted and a fixed number of clients is drawn: use sampling "
            "method 'without-replacement', for replace-one neighbours, or 'no-amplification'"
        )
    if why:
        allowed = "what the strategy did, and differs: " + "; ".join(why)
        raise ParameterError("history", [tuple(event) for event, _ in rounds], allowed)


def _draws_fixed_number(strategy: Any) -> bool:
    """Return whether the clients of a round are those that Flower's own strategies draw."""
    inner = strategy
    while getattr(inner, "strategy", None) is not None:
        inner = inner.strategy
    for cls in type(inner).__mro__:
        if cls.__name__ == DRAWS_FIXED:
            return True
        if "configure_train" in vars(cls) or "configure_fit" in vars(cls):
            return False
    return False
