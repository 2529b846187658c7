"""The search for the entries of a proof: each is checked as it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from flint import ctx

from accountant.proofs.lattice_parameters import lattice_entry
from accountant.proofs.no_road import NoRoad
from accountant.proofs.paths import costly_path, float_epsilon
from accountant.proofs.roads import Entry, Items, moment_entry, roads
from accountant.verifier import NoProof, verdict
from accountant.verifier.balls import Budget
from accountant.verifier.bounding_pairs import bounding_pair
from accountant.verifier.choices import on_path
from accountant.verifier.document import Fields
from accountant.verifier.largest_losses import largest_sum
from accountant.verifier.lattice_sums import composed
from accountant.verifier.releases import ANY_OF
from accountant.verifier.verdict import FAILURES

NEAR = 1e-10  # of epsilon, the end that a lattice proves
DIGITS = 512  # of rates that are computed
MAX_STEPS = 60  # of the search for it
LONG = 2**15  # nodes of a contour that take longer than a lattice


class Search:
    """The entries of one proof, and the interval they prove.

    The methods for the ends of a certificate are tried first.  Where there is none, pairs on
    a lattice prove an interval that is a little wider.
    """

    def __init__(self, ways: list[Any], delta: float, lower: float, upper: float) -> None:
        self._ways, self._delta = ways, delta
        self._lower, self._upper = lower, upper
        self._paths: dict[tuple[int, bool], list[Any]] = {}  # of ways with sets, for the lower end

    def entries(self) -> dict[str, Any]:
        """Return the fields of the proof that say what is proved, and how."""
        directions = sorted(verdict.directions(self._ways))
        above = [self._above(*direction) for direction in directions]
        self._upper = max([self._upper, *(end for _, end in above)])
        # delta falls: an entry holds further up, but for its own errors
        entries = [
            entry
            if end == self._upper or self._holds(entry, lower=False)
            else self._above(*direction)[0]
            for direction, (entry, end) in zip(directions, above, strict=True)
        ]
        below = self._below(directions) if self._lower > 0 else (None, 0.0)
        return {
            "above": entries,
            "below": below[0],
            "lower": float(below[1]).hex(),
            "upper": float(self._upper).hex(),
        }

    def _above(self, way: int, back: bool) -> tuple[Entry, float]:
        """Return an entry and the upper end that it shows, or the last that was tried."""
        entry: Entry | None = None
        wider: list[tuple[Entry, float]] = []
        with suppress(NoRoad):
            for entry in self._precise(way, back, lower=False):
                if entry.get("nodes", 0) > LONG and not wider:  # a lattice may be quicker
                    wider += self._wider(way, back)
                    if wider and min(end for _, end in wider) == self._upper:
                        break
                if self._holds(entry, lower=False):
                    return entry, self._upper
        if entry is not None and not wider and not _may_be_wider(entry):
            return entry, self._upper
        wider = wider or self._wider(way, back)
        if not wider:
            if entry is None:
                raise NoRoad(self._reason(way, back))
            return entry, self._upper
        return min(wider, key=lambda candidate: candidate[1])

    def _wider(self, way: int, back: bool) -> list[tuple[Entry, float]]:
        """Return the entries that show an upper end further up, and that end."""
        shown_entries = []
        for method in (self._on_lattice, self._by_moment):
            with suppress(NoRoad, *FAILURES):
                shown_entries.append(method(way, back, lower=False))
        return shown_entries

    def _below(self, directions: list[tuple[int, bool]]) -> tuple[Entry | None, float]:
        """Return an entry and the lower end that it shows, or None."""
        lower_ends, coarse = [], []
        for way, back in directions:
            tried, lost = [], False
            try:
                for entry in self._precise(way, back, lower=True):
                    if self._holds(entry, lower=True):
                        return entry, self._lower
                    tried.append(entry)
            except NoRoad:
                lost = True
            # of a plan with sets, the certificate's lower end may be that of no path
            if lost or self._has_sets(way) or any(map(_may_be_wider, tried)):
                coarse.append((way, back))
        for way, back in coarse:
            with suppress(NoRoad, *FAILURES):
                lower_ends.append(self._on_lattice(way, back, lower=True))
        return max(lower_ends, key=lambda candidate: candidate[1], default=(None, self._lower))

    def _items(self, way: int, back: bool, *, lower: bool) -> Items:
        Budget.remaining = verdict.BUDGET
        releases = self._ways[way]
        if lower:
            releases = on_path(releases, json.loads(json.dumps(self._path(way, back))))
        with ctx.workprec(DIGITS):
            items = [
                (bounding_pair(release, above=not lower), n) for release, n in releases.items()
            ]
        return [(item, n) for item, n in items if item]

    def _has_sets(self, way: int) -> bool:
        """Return whether a release of an alternative stands for several pairs."""
        return any(release[0] == ANY_OF for release in self._ways[way])

    def _path(self, way: int, back: bool) -> list[Any]:
        """Return the choices of a costly path through an alternative, none where it has no sets."""

        def score(releases: Any) -> float:
            with ctx.workprec(DIGITS):
                items = [
                    (x, n)
                    for release, n in releases.items()
                    if (x := bounding_pair(release, above=False))
                ]
            if self._delta == 0:
                fraction, ball = largest_sum(items, back, above=False)
                return float(fraction) + float(ball)
            with suppress(NoRoad, NoProof):
                return float_epsilon(items, back, self._delta)
            return 0.0

        if not self._has_sets(way):
            return []
        if (way, back) not in self._paths:
            self._paths[way, back] = costly_path(self._ways[way], score)
        return self._paths[way, back]

    def _head(self, way: int, back: bool, *, lower: bool) -> Entry:
        """Return the fields of an entry that say what it is about."""
        head: Entry = {"way": way, "direction": "reversed" if back else "forward"}
        return {**head, "path": self._path(way, back)} if lower and self._has_sets(way) else head

    def _precise(self, way: int, back: bool, *, lower: bool) -> Iterator[Entry]:
        end, items = self._lower if lower else self._upper, self._items(way, back, lower=lower)
        width = max(self._upper - self._lower, 1e-16 * self._upper)
        for entry in roads(items, back, self._delta, end, width, lower=lower):
            yield {**self._head(way, back, lower=lower), **entry}

    def _reason(self, way: int, back: bool) -> str:
        """Return why no method proves an upper end: the reason of the last one tried."""
        try:
            self._on_lattice(way, back, lower=False)
        except (NoRoad, NoProof) as error:
            return str(error)
        return "no road leads to a bound"

    def _by_moment(self, way: int, back: bool, *, lower: bool) -> tuple[Entry, float]:
        entry, end = moment_entry(self._items(way, back, lower=lower), back, self._delta)
        return {**self._head(way, back, lower=lower), **entry}, max(end, self._upper)

    def _on_lattice(self, way: int, back: bool, *, lower: bool) -> tuple[Entry, float]:
        """Return an entry, and the nearest end that it proves."""
        items = self._items(way, back, lower=lower)
        claimed_end = self._lower if lower else self._upper
        if self._delta == 0 or not items:
            raise NoRoad("no lattice shows a delta of 0")
        entry = lattice_entry(items, back, claimed_end, self._delta)
        copied = json.loads(json.dumps({k: v for k, v in entry.items() if k != "road"}))
        Budget.remaining = verdict.BUDGET
        with ctx.workprec(copied.pop("bits")):
            bounds = composed(items, back, Fields(copied, "an entry"), above=not lower)

            def shown(end: float) -> bool:
                low, high = bounds(end)
                return bool(low > self._delta if lower else high <= self._delta)

            head = self._head(way, back, lower=lower)
            return {**head, **entry}, _nearest(shown, claimed_end, upwards=not lower)

    def _holds(self, entry: Entry, *, lower: bool) -> bool:
        Budget.remaining = verdict.BUDGET
        try:
            copied = json.loads(json.dumps(entry))  # the check takes its fields
            end = self._lower if lower else self._upper
            verdict.check(copied, self._ways, self._delta, end, above=not lower)
        except FAILURES:
            return False
        return True


def _may_be_wider(entry: Entry) -> bool:
    """Return whether an entry that fails may have failed by what it adds itself, or takes."""
    smoothed = "smooth" in entry and float.fromhex(entry["smooth"]) > 0
    return smoothed or entry.get("nodes", 0) > LONG


def _nearest(shown: Callable[[float], bool], claimed: float, *, upwards: bool) -> float:
    """Return the end nearest to the given one, on its outer side, that is shown."""
    if shown(claimed):
        return claimed
    fails, distance = claimed, NEAR * claimed or NEAR
    for _ in range(MAX_STEPS):
        holds = claimed + distance if upwards else max(claimed - distance, 0.0)
        if shown(holds):
            break
        fails, distance = holds, 4 * distance
    else:
        raise NoRoad("no end is shown by a lattice")
    while abs(holds - fails) > NEAR * claimed + 0.02 * abs(holds - claimed):
        middle = (holds + fails) / 2
        holds, fails = (middle, fails) if shown(middle) else (holds, middle)
    return holds
