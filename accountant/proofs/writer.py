"""Proofs of certificates, as files: the plan, the interval, and a road to each bound.

A proof is checked by `accountant.verifier`, which trusts nothing here: a parameter that is badly
chosen makes a proof fail, never a wrong one pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from accountant.errors import UnsupportedPlan
from accountant.plans.plan import Plan
from accountant.proofs.contour_parameters import Contour
from accountant.proofs.float_pairs import (
    FloatFinite,
    FloatGaussian,
    FloatLaplace,
    FloatMixture,
    FloatPair,
)
from accountant.proofs.no_road import NoRoad
from accountant.serialisation.plan_json import to_dict
from accountant.verifier import NoProof, ProofError
from accountant.verifier.plan import alternatives

FINITE = {"response", "pair", "discrete laplace", "discrete gaussian", "sampled"}
CLOSED = {"gaussian", "laplace", "mixture", "fixed sample", "sampled laplace"}
LATTICE = {"response", "discrete laplace", "discrete gaussian"}
MAX_SUMS = 250_000
MAX_RESIDUES = 300  # beyond, a smoothed contour is quicker
PROOFS = "the writer of proofs"
Items = list[tuple[Any, int]]


def write_proof(plan: Plan, delta: float, lower: float, upper: float) -> bytes:
    """Return the proof that the epsilon of a plan at ``delta`` is in [lower, upper].

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    delta : float
        In [0, 1).
    lower : float
        The lower end of a certificate.
    upper : float
        Its upper end.

    Returns
    -------
    bytes
        Canonical JSON, for `accountant.verifier.verify`, which says what it proves.

    Raises
    ------
    UnsupportedPlan
        Where there is no road to a proof, with the reason.

    References
    ----------
    ``docs/proofs/contour.md`` for the theorems, which `accountant.verifier` restates.

    Examples
    --------
    >>> from accountant import GaussianLoss, Tight
    >>> from accountant.proofs.writer import write_proof
    >>> found = Tight().certify(GaussianLoss(0.5), delta=1e-6)
    >>> proof = write_proof(GaussianLoss(0.5), 1e-6, found.lower, found.upper)
    >>> from accountant.verifier import verify
    >>> verify(proof).word
    'PROVED'
    """
    if not math.isfinite(upper):
        raise UnsupportedPlan(plan, PROOFS, "an infinite epsilon needs no proof")
    fields = to_dict(plan)
    document = {
        "proof": 1,
        "plan": fields,
        "delta": float(delta).hex(),
        "lower": float(lower).hex(),
        "upper": float(upper).hex(),
    }
    try:
        ways = alternatives(fields, decimal=delta == 0)
        search = _Search(ways, float(delta), float(lower), float(upper))
        document["above"] = [search.above(*one) for one in search.directions()]
        document["below"] = search.below() if lower > 0 else None
    except (NoProof, NoRoad, ProofError) as error:
        raise UnsupportedPlan(plan, PROOFS, f"{error}") from None
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return (text + "\n").encode("ascii")


class _Search:
    """The roads of one proof; each entry is checked as it is written."""

    def __init__(self, ways: list[Any], delta: float, lower: float, upper: float) -> None:
        try:
            from accountant.verifier import verdict
        except ImportError as error:
            raise NoRoad(f"pip install 'dp-attest[verify]': {error}") from None
        self._verdict, self._ways = verdict, ways
        self._delta, self._lower, self._upper = delta, lower, upper

    @property
    def _width(self) -> float:
        return max(self._upper - self._lower, 1e-16 * self._upper)

    def directions(self) -> list[tuple[int, bool]]:
        """Return every way and direction that needs a bound."""
        return sorted(self._verdict.directions(self._ways))

    def above(self, way: int, back: bool) -> dict[str, Any]:
        """Return an entry that shows the upper end, or the last that was tried."""
        entry, reason = None, None
        for entry in self._entries(way, back, self._upper, lower=False):
            reason = self._failure(entry, self._upper, above=True)
            if reason is None:
                break
        if entry is None:
            raise NoRoad("no road to a proof: too many nodes or sums of losses")
        return entry

    def below(self) -> dict[str, Any] | None:
        """Return an entry that shows the lower end, or None."""
        for way, back in self.directions():
            with suppress(NoRoad):
                for entry in self._entries(way, back, self._lower, lower=True):
                    if self._failure(entry, self._lower, above=False) is None:
                        return entry
        return None

    def _failure(self, entry: dict[str, Any], end: float, *, above: bool) -> str | None:
        try:
            copied = json.loads(json.dumps(entry))
            self._verdict.parts.Part.left = self._verdict.BUDGET
            self._verdict.check(copied, self._ways, self._delta, end, above=above)
        except (NoProof, ProofError) as error:
            return str(error)
        return None

    def _entries(self, way: int, back: bool, end: float, lower: bool) -> Iterator[dict[str, Any]]:
        items = list(self._ways[way].items())
        head = {"way": way, "direction": "reversed" if back else "forward"}
        kinds, only = {one[0] for one, _ in items}, len(items) == 1
        if self._delta == 0:
            yield {**head, "road": "largest losses", "bits": 256}
            return
        if not items or kinds == {"gaussian"} or (only and items[0][1] == 1 and kinds <= CLOSED):
            yield {**head, "road": "closed form", "bits": 256}
            return
        if only and kinds == {"laplace"} and items[0][1] <= MAX_RESIDUES:
            yield {**head, "road": "residues", "bits": 160 + 7 * items[0][1]}
            return
        if kinds == {"allocation"} and only and items[0][1] == 1:
            from accountant.proofs.allocation_parameters import allocation_entry

            _, mu2, steps = items[0][0]
            yield {**head, **allocation_entry(float(mu2), steps, back, end, self._delta)}
            return
        if kinds <= FINITE and self._sums(items) <= MAX_SUMS:
            yield {**head, "road": "enumeration", "bits": 192}
            return
        parts = [(self._float_pair(one, back), n) for one, n in items]
        first = Contour(parts, end, self._delta, 1e-3, 0.0)
        if not lower and (rough := first.chernoff()) is not None:
            yield {**head, **rough}
            return
        slack = min(1.0, max(self._width * first.a, 1e-13))  # what the width of the interval is for delta
        reason = None
        for share, smooth in ((1e-3, 1.0), (1e-3, 0.3), (1e-4, 0.1), (1e-6, 0.03)):
            try:
                found = Contour(parts, end, self._delta, share * slack, smooth * slack)
                yield {**head, **found.entry(lower)}
            except NoRoad as error:
                reason = reason or error
        if reason is not None:
            raise reason

    def _float_pair(self, release: Any, back: bool) -> FloatPair:
        from flint import ctx

        match release:
            case ("gaussian", mu2):
                return FloatGaussian(float(mu2))
            case ("laplace", m):
                return FloatLaplace(float(m))
            case ("mixture", unit2, first, second):
                sides = [first, second]
                if back:
                    sides = [[(w, -s) for w, s in side] for side in (second, first)]
                return FloatMixture(float(unit2), *sides)
            case (kind, *_) if kind in FINITE:
                ctx.prec = 96
                law, _ = self._verdict.parts.outcomes(release, back)
                return FloatFinite(*(np.array([float(x) for x in one]) for one in zip(*law)))
        raise NoRoad(f"many releases of the kind {release[0]} have no road to a proof")

    def _sums(self, items: Items) -> float:
        """Return how many sums of losses there are, about."""
        from flint import ctx

        found, ctx.prec = 1.0, 64
        for release, n in items:
            try:
                size = len(self._verdict.parts.outcomes(release, False)[0])
            except NoProof:
                return math.inf
            if release[0] in LATTICE:
                found *= n * (size - 1) + 1
            else:
                found *= math.comb(min(n, 10**7) + size - 1, size - 1)
        return found
