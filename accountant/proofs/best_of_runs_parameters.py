"""Chooses the numbers in a proof of what the best of a random number of runs costs.

The checker, `accountant/verifier/best_of_runs.py`, bounds the best of runs at some epsilons, the
``knots`` of a pair above it, by the profile of one run at some ``points`` in both directions of the
neighbours.  The points, the cells of u between ``tails`` and the corners ``shifts`` are those of
`accountant.amplification.repeated.profile_terms`, of which a few are enough: with `CORNERS` of them
the end that is proved is about .1 % above the certificate's.

Mathematics: docs/proofs/repeated.md, 4.
"""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np

from accountant.amplification.repeated import ProfileTerms, Repeated, profile_terms
from accountant.losses.loss import Loss
from accountant.numerics import Array
from accountant.numerics.ordered_sums import ordered_dot
from accountant.numerics.search import least_float_that
from accountant.proofs.contour_parameters import Entry, Items
from accountant.proofs.lattice_parameters import lattice_entry
from accountant.proofs.method_entries import method_entries
from accountant.proofs.no_method import NoMethod
from accountant.verifier.balls import Budget
from accountant.verifier.best_of_runs import pairs_above, points_of_run
from accountant.verifier.releases import Release
from accountant.verifier.verdict import BUDGET, FAILURES

TAILS, PARTS, CORNERS = 64, 16, 16
# Points that one lattice serves; a contour with more nodes takes longer to check than its share.
ENDS_OF_LATTICE, LONG_POINT = 4, 300
# A point is taken whose bound on delta is within this share of the profile in floats; the profile
# of the best run may be that much larger at the end that is searched.
SHARE = 1e-3
KNOTS = 96  # of a best that is composed with other releases
FAR_SHARE = 1e-3  # of delta: beyond the outermost knots delta of one best is at most so much
LEAST_DELTA = 1e-30  # of a point: what is less may count as so much


class BestOfRuns:
    """One best of runs in one direction of the neighbours."""

    def __init__(self, release: Release, repeated: Repeated, back: bool) -> None:
        self._back = back
        self._repeated = repeated.reversed if back else repeated
        self._runs: Items = pairs_above(release[2])

    def table(self, delta: float, claimed: float) -> tuple[Entry, float]:
        """Return the table for a plan of this best alone, and the end that it proves.

        The end is near the certificate's, which is ``claimed``.
        """
        terms = self._terms(self._repeated)
        end = self._end(terms, delta * (1 - 4 * SHARE), claimed)
        return {
            "points": self._points(self._back, np.unique(np.maximum(end - terms.shifts, 0.0))),
            "mirrored": self._points(not self._back, terms.log_slopes),
            "terms": terms_table(terms),
            "knots": [end.hex()],
        }, end

    def knots_table(self, delta: float) -> Entry:
        """Return the table of a best that is composed: knots as far as its delta matters."""
        ahead, behind = (self._terms(x) for x in (self._repeated, self._repeated.reversed))
        ends = [self._end(terms, delta * FAR_SHARE, 1.0) for terms in (ahead, behind)]
        knots = np.linspace(-ends[1], ends[0], KNOTS)
        widest = max(float(np.abs(terms.shifts).max()) for terms in (ahead, behind))
        step = knots[1] - knots[0]
        points = np.arange(0.0, max(ends) + widest + step, step)

        def rows(loss: Loss, back: bool, log_slopes: Array) -> list[Entry]:
            # No point is needed beyond the first one of so small a delta.
            is_large = loss.profile(points) >= delta * FAR_SHARE**2
            needed = points[: np.count_nonzero(is_large) + 1]
            return self._points(back, np.union1d(needed, log_slopes))

        return {
            "points": rows(self._repeated.loss, self._back, behind.log_slopes),
            "mirrored": rows(self._repeated.loss.reversed, not self._back, ahead.log_slopes),
            "terms": terms_table(ahead),
            "mirrored terms": terms_table(behind),
            "knots": [knot.hex() for knot in knots.tolist()],
        }

    def _terms(self, repeated: Repeated) -> ProfileTerms:
        """Return few terms above the profile, of a greatest shift that the checker can show."""
        terms = profile_terms(repeated, TAILS * PARTS, CORNERS)
        # The greatest ratio of the checker may be larger than in floats.
        greatest = terms.shifts[-1] + SHARE / 10 * abs(terms.shifts[-1])
        return terms._replace(shifts=np.append(terms.shifts[:-1], greatest))

    def _end(self, terms: ProfileTerms, delta: float, near: float) -> float:
        """Return about the least epsilon at which the terms sum to at most ``delta``."""
        loss = self._repeated.loss

        def is_enough(end: float) -> bool:
            profile = loss.profile_any_epsilon(end - terms.shifts)
            return float(ordered_dot(profile, terms.weights)) <= delta

        enough = near
        while not is_enough(enough):
            enough = 2 * enough + SHARE
        return least_float_that(is_enough, 0.0, enough, relative=SHARE**3)

    def _points(self, back: bool, ends: Array) -> list[Entry]:
        """Return rows that bound delta of one run, at those epsilons where a method does."""
        loss = self._repeated.loss if back == self._back else self._repeated.loss.reversed
        deltas = np.maximum(loss.profile_any_epsilon(ends), LEAST_DELTA)
        rows, waiting = [], list(zip(ends.tolist(), deltas.tolist(), strict=True))
        while waiting:
            row, served = self._row(back, waiting)
            rows += row
            waiting = waiting[served:]
        return rows

    def _row(self, back: bool, points: list[tuple[float, float]]) -> tuple[list[Entry], int]:
        """Return a row for the first of the points, or for the first few, and how many it serves.

        A point is an epsilon with about the delta of one run there.  There is no row where no
        method serves the first of them.
        """
        end, delta = points[0]

        def bounds(entry: Entry, ends: list[float]) -> list[float]:
            Budget.remaining = BUDGET
            row = {**entry, "ends": [end.hex() for end in ends]}
            # The checker takes the fields away as it reads them.
            return [
                float(bound)
                for _, bound in points_of_run(json.loads(json.dumps([row])), self._runs, back)
            ]

        long_entries = []
        with suppress(NoMethod):
            for entry in method_entries(self._runs, back, delta, end, SHARE / 4, lower=False):
                if entry.get("nodes", 0) > LONG_POINT:
                    long_entries.append(entry)
                    continue
                with suppress(*FAILURES):
                    if bounds(entry, [end])[0] <= delta * (1 + SHARE):
                        return [{**entry, "ends": [end.hex()]}], 1
        for size in (min(ENDS_OF_LATTICE, len(points)), 1):
            ends = [end for end, _ in points[:size]]
            with suppress(NoMethod, *FAILURES):
                entry = lattice_entry(self._runs, back, *points[size // 2])
                shown = bounds(entry, ends)
                if all(x <= y * (1 + SHARE) for x, (_, y) in zip(shown, points, strict=False)):
                    return [{**entry, "ends": [end.hex() for end in ends]}], size
        return [{**entry, "ends": [end.hex()]} for entry in long_entries[:1]], 1


def terms_table(terms: ProfileTerms) -> Entry:
    """Return terms as the checker reads them."""
    return {
        "tails": [tail.hex() for tail in terms.tails[PARTS::PARTS].tolist()],
        "parts": PARTS,
        "shifts": [shift.hex() for shift in terms.shifts.tolist()],
    }
