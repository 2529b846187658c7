"""A ledger that charges the full cost of a plan and draws its noise multiplied by a factor.

So an audit can run an algorithm as if its implementation had too little noise, and find the largest
factor at which it still falsifies the claim.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np

from accountant.domains import Interval
from accountant.errors import ParameterError
from accountant.ledger.interfaces import Releasable, ShapedQuery, drawing_mechanism
from accountant.ledger.ledger import Ledger
from accountant.ledger.private_data import Users
from accountant.numerics.search import greatest_float_that
from accountant.randomness import Rng
from algorithms.base.non_private import NoPrivacy
from mechanisms.families.selection import SelectionMechanism

NOISE_FACTOR = Interval(0.0, 1.0)
MAX_LOG_ODDS = 36.0  # about the largest log-odds whose probability is a float below 1
MIN_FACTOR = 1e-3  # below this factor an algorithm counts as noise-free


class ReducedNoiseLedger(Ledger):
    """A ledger whose noise is ``factor`` times the plan's; for audits only.

    With ``local`` it refuses what the local model with one report per user does not allow: a
    release of all users together, and a second report of a user.
    """

    def __init__(
        self,
        data: Any,
        plan: Any,
        factor: float,
        rng: Rng,
        public: Any = None,
        local: bool = False,
    ) -> None:
        super().__init__(data, plan, rng=rng, public=public)
        self.factor = NOISE_FACTOR.check("noise", factor)
        self.local = local
        self._reported = np.zeros(self._users, dtype=bool)

    def _answer(self, mechanism: Releasable, query: ShapedQuery, who: Users | None) -> Any:
        if self.local:
            if who is None or self._reported[who].any():
                shown = "one that asks all users together" if who is None else "one that asks twice"
                raise ParameterError("algorithm", shown, "local, with one report of each user")
            self._reported[who] = True
        return super()._answer(mechanism, query, who)

    def _draw(self, mechanism: Releasable, value: Any) -> Any:
        return release_with_less_noise(
            drawing_mechanism(mechanism), value, self.factor, self._noise
        )

    def _answer_blocks(
        self,
        mechanism: Releasable,
        query: ShapedQuery,
        charged: Iterable[Users],
        executor: Executor | None,
    ) -> Iterator[Any]:
        del executor  # a worker process would draw the full noise
        for who in charged:
            yield self._answer(mechanism, query, who)


def release_with_less_noise(
    mechanism: Any, value: Any, factor: float, rng: np.random.Generator
) -> Any:
    """The release of ``value`` by ``mechanism`` with ``factor`` times its noise.

    A ``scale`` is multiplied; a randomised number or vector z of v becomes ``v + factor (z - v)``;
    a randomised response gets ``epsilon / factor``.  Raises `ParameterError` for other mechanisms.
    """
    if factor == 1 or isinstance(mechanism, NoPrivacy):
        return mechanism.release(value, rng)
    if hasattr(mechanism, "scale") and factor > 0:
        return mechanism.with_noise_factor(factor).release(value, rng)
    if isinstance(mechanism, SelectionMechanism):
        return np.argmax(value, axis=-1)
    output = mechanism.release(value, rng)
    if np.shape(output) == np.shape(value) and np.asarray(output).dtype.kind == "f":
        centre = np.asarray(value, dtype=float)
        return centre + factor * (output - centre) if factor > 0 else centre.copy()
    return _sharper_response(mechanism, factor).release(value, rng)


def _sharper_response(mechanism: Any, factor: float) -> Any:
    """The mechanism as a randomised response of ``epsilon / factor``.

    The log-odds of its probability ``keep``, or ``q``, are linear in epsilon.
    """
    # ``keep`` is the probability of a report that agrees with the value, and grows with epsilon;
    # ``q`` is that of a bit that does not, and falls.
    for name, sign in (("keep", 1), ("q", -1)):
        probability = getattr(mechanism, name, None)
        if probability is not None and mechanism.loss.pure < math.inf:
            added_log_odds = mechanism.loss.pure * (1 / factor - 1) if factor > 0 else math.inf
            log_odds = math.log(probability) - math.log1p(-probability) + sign * added_log_odds
            log_odds = min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)
            return dataclasses.replace(mechanism, **{name: 1 / (1 + math.exp(-log_odds))})
    allowed = "of additive noise, a selection, a randomised mean or response, to have less noise"
    raise ParameterError("mechanism", mechanism, allowed)


def largest_falsified_factor(
    falsifies: Callable[[float], bool], tries: int
) -> tuple[float | None, str]:
    """The largest noise factor below 1 at which the claim was falsified, and words for a witness.

    The factor is None if the claim was not even falsified at 0.  Without tries nothing is searched:
    it is None, and there are no words.

    It bisects the logarithm between 1e-3 and 1, and each try has runs of its own.  With 7 tries the
    factor is within 6 % of the largest one if the power falls with the noise; at the factor that is
    returned the claim was falsified in any case.
    """
    if tries == 0:
        return None, ""
    if not falsifies(0.0):
        return None, "; not falsified even without noise"
    factor = greatest_float_that(
        falsifies, MIN_FACTOR, 1.0, steps=tries, mean=lambda a, b: math.sqrt(a * b)
    )
    if factor <= MIN_FACTOR:
        no_factor = f"at no factor of {MIN_FACTOR:g} or above that was tried"
        return 0.0, f"; falsified without noise, and {no_factor}"
    return factor, f"; still falsified with noise times {factor:.3g}"
