"""Writes the proof that the epsilon of a plan at a delta lies in a certificate's interval.

A proof is a file with the plan, delta, the interval, and entries.  An entry names a method and its
parameters, by which the checker shows that delta at an end of the interval is at most the delta
stated (upper end), or more (lower end): there is one for the upper end in each direction of the
neighbours, and one for the lower end.  The interval that is proved may be wider than the
certificate's.

A plan with parts in parallel has several alternatives, lists of releases, all of which must be
bounded from above.  A release may be a set, of which one of several parts is chosen each time; for
a lower end one choice in every set is enough, called a path.

The fields of an entry: ``way``, the number of the alternative; ``direction``, "forward" for (P, Q)
or "reversed" for (Q, P); ``path``, for a lower end; ``road``, the method ("enumeration",
"allocation", "largest losses", "contour" or "lattice"); ``bits``, the checker's precision; and the
method's own, such as the ``nodes`` of an integral and the variance ``smooth`` of its smoothing.

A proof is checked by `accountant.verifier`, which trusts nothing here: a parameter that is badly
chosen makes a proof fail, never a wrong one pass.  Entries for the ends of the certificate are
checked before they are taken.  Where a method exists and no entry holds, the last one is written,
and the checker says NOT PROVED, with its reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from flint import ctx

from accountant.amplification.repeated import Repeated
from accountant.errors import UnsupportedPlan
from accountant.plans.plan import Plan
from accountant.proofs.best_of_runs_parameters import BestOfRuns
from accountant.proofs.claimed_losses import proof_plan
from accountant.proofs.contour_parameters import Entry, Items, moment_entry
from accountant.proofs.lattice_parameters import lattice_entry
from accountant.proofs.method_entries import method_entries
from accountant.proofs.no_method import MOST_BYTES, NoMethod, without_proof
from accountant.proofs.paths import costly_path, float_epsilon
from accountant.verifier import NoProof, ProofError, verdict
from accountant.verifier.balls import Budget
from accountant.verifier.best_of_runs import items_above, one_run
from accountant.verifier.bounding_pairs import bounding_pair
from accountant.verifier.choices import alternatives, on_path
from accountant.verifier.document import Fields
from accountant.verifier.largest_losses import largest_sum
from accountant.verifier.lattice_sums import composed
from accountant.verifier.plan import read_plan
from accountant.verifier.plan_parts import claims_of, kind_of
from accountant.verifier.releases import ANY_OF
from accountant.verifier.verdict import FAILURES

PROOFS = "the writer of proofs"
# A lattice may prove no more than an end outside of the certificate's.  The search for it starts at
# FIRST_DISTANCE from there, relative to the end, and goes four times as far in each of at most
# MAX_STEPS steps.  The bracket between the last two is then halved, until its width is below
# BRACKET of the distance and FIRST_DISTANCE of the end together.
FIRST_DISTANCE, MAX_STEPS = 1e-10, 60
BRACKET = 0.02
# The ends that are tried for a plan with a best of runs are so much above the certificate's.
STRETCHES = (1e-3, 2e-3, 4e-3, 8e-3, 0.02)
PRECISION = 512  # bits of the numbers of the pairs that bound a release
LONG = 2**15  # nodes: a contour with more of them takes longer to check than a lattice


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
        Where there is no method for a proof, with the reason.

    References
    ----------
    ``docs/proofs/contour.md`` for the theorems, which `accountant.verifier` restates.

    Examples
    --------
    >>> from accountant import GaussianLoss, Tight
    >>> from accountant.proofs.writer import write_proof
    >>> interval = Tight().certify(GaussianLoss(0.5), delta=1e-6)
    >>> proof = write_proof(GaussianLoss(0.5), 1e-6, interval.lower, interval.upper)
    >>> from accountant.verifier import verify
    >>> verify(proof).word
    'PROVED'
    """
    if not math.isfinite(upper):
        raise UnsupportedPlan(plan, PROOFS, "an infinite epsilon needs no proof")
    # At delta 0 the largest losses are added up, and a number is the decimal that is printed.
    decimal = delta == 0
    fields = proof_plan(plan, decimal=decimal)
    document = {"proof": 1, "plan": fields, "delta": float(delta).hex()}
    try:
        options = alternatives(fields, decimal=decimal)
        bests = {
            release: item
            for item, _ in plan.losses()
            if isinstance(item, Repeated)
            for release in read_plan(proof_plan(item, decimal=decimal), decimal=decimal)
        }
        document |= Search(options, float(delta), float(lower), float(upper), bests).entries()
    except (NoProof, NoMethod, ProofError) as error:
        why = f"{error}{_whose(fields, str(error), decimal=decimal)}"
        raise UnsupportedPlan(plan, PROOFS, without_proof(why)) from None
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        why = "a number of the plan is infinite, and a file holds none"
        raise UnsupportedPlan(plan, PROOFS, without_proof(why)) from None
    if len(text) >= MOST_BYTES:
        why = f"its file would have {len(text):,} bytes, and {MOST_BYTES:,} are allowed"
        raise UnsupportedPlan(plan, PROOFS, without_proof(why))
    return (text + "\n").encode("ascii")


def _whose(fields: dict[str, Any], why: str, *, decimal: bool) -> str:
    """Return in words which mechanism claims the loss that has no proof; "" where none does.

    It is the mechanism whose claimed loss alone is refused for the same reason, in words.
    """
    for claim in claims_of(fields):
        try:
            alternatives(claim["loss"], decimal=decimal)
        except (NoProof, ProofError) as error:
            if str(error) == why:
                return f" (the loss of {kind_of(claim)})"
    return ""


class Direction(NamedTuple):
    """An alternative of a plan by its number, and whether its pairs are (Q, P)."""

    number: int  # the entry's field "way"
    back: bool


class Shown(NamedTuple):
    """An entry, and the end of the interval that it shows; the entry None shows nothing."""

    entry: Entry | None
    end: float


class Search:
    """The search for the entries of one proof, and the interval that they prove.

    Methods that prove an end of the certificate itself are tried first.  Where there is none, pairs
    on a lattice prove an interval that is a little wider.

    ``options`` are the alternatives of the plan, and ``bests`` the losses of its releases that are
    the best of a random number of runs.  The other arguments are the certificate's.
    """

    def __init__(
        self,
        options: list[Any],
        delta: float,
        lower: float,
        upper: float,
        bests: Mapping[Any, Repeated] = MappingProxyType({}),
    ) -> None:
        self._alternatives, self._bests, self._delta = options, bests, delta
        # For each direction the tables of its bests of runs, for the upper end.
        self._tables: dict[Direction, list[Entry]] = {}
        self._lower, self._upper = lower, upper
        # The choices of a costly path through each alternative with sets, for the lower end.
        self._paths: dict[Direction, list[Any]] = {}

    def entries(self) -> dict[str, Any]:
        """Return the fields of the proof that say what is proved, and how."""
        directions = sorted(
            Direction(*direction) for direction in verdict.directions(self._alternatives)
        )
        above = [self._above(direction) for direction in directions]
        self._upper = max([self._upper, *(shown.end for shown in above)])
        # Delta falls with epsilon, so an entry for a smaller end mostly holds at the greatest one.
        entries = [
            entry
            if end == self._upper or self._holds(entry, lower=False)
            else self._above(direction).entry
            for direction, (entry, end) in zip(directions, above, strict=True)
        ]
        below = self._below(directions) if self._lower > 0 else Shown(None, 0.0)
        return {
            "above": entries,
            "below": below.entry,
            "lower": float(below.end).hex(),
            "upper": float(self._upper).hex(),
        }

    def _above(self, direction: Direction) -> Shown:
        """Return an entry and the upper end that it shows; if none holds, the last one tried.

        It is the first precise entry that holds.  Where none does, or a lattice is quicker and
        proves the same end, it is the wider entry with the least end.
        """
        entry: Entry | None = None  # the last precise one
        wider: list[Shown] = []
        releases = self._alternatives[direction.number]
        if self._delta and list(releases.values()) == [1] and next(iter(releases))[0] == "best":
            # The plan is the best of a random number of runs and nothing else.
            (release,) = releases
            best = BestOfRuns(release, self._bests[release], direction.back)
            table, end = best.table(self._delta, self._upper)
            self._tables[direction] = [table]
            head = self._head(direction, lower=False)
            return Shown({**head, "road": "enumeration", "bits": 128}, max(end, self._upper))
        if self._delta and self._tables_of_bests(direction):
            return min(self._wider(direction), key=lambda shown: shown.end)
        # `NoMethod` ends the precise entries: the method is a lattice, or a contour is too long.
        with suppress(NoMethod):
            for entry in self._precise(direction, lower=False):
                if entry.get("nodes", 0) > LONG and not wider:  # a lattice may be quicker
                    wider += self._wider(direction)
                    if wider and min(shown.end for shown in wider) == self._upper:
                        break
                if self._holds(entry, lower=False):
                    return Shown(entry, self._upper)
        if entry is not None and not wider and not _may_be_wider(entry):
            # It failed, and no other end would make it hold.  It is written all the same, so that
            # the checker says why.
            return Shown(entry, self._upper)
        wider = wider or self._wider(direction)
        if not wider:
            if entry is None:
                # There is no method at all: this call raises the error that says why.
                self._on_lattice(direction, lower=False)
                raise NoMethod("no road leads to a bound")
            return Shown(entry, self._upper)
        return min(wider, key=lambda shown: shown.end)

    def _tables_of_bests(self, direction: Direction) -> list[Entry]:
        """Return the table of each best of runs of an alternative, for the upper end."""
        if direction not in self._tables:
            self._tables[direction] = [
                BestOfRuns(release, self._bests[release], direction.back).knots_table(
                    self._delta / count
                )
                for release, count in self._alternatives[direction.number].items()
                if release[0] == "best"
            ]
        return self._tables[direction]

    def _wider(self, direction: Direction) -> list[Shown]:
        """Return entries that show an upper end above the certificate's, each with its end."""
        shown_entries = []
        items = self._items(direction, lower=False)
        if self._delta and self._tables_of_bests(direction):
            # The pair above a best of runs costs a little more than the certificate's profile.
            for stretch in STRETCHES:
                end = self._upper * (1 + stretch)
                with suppress(NoMethod):
                    for fields in method_entries(
                        items, direction.back, self._delta, end, stretch * end / 10, lower=False
                    ):
                        entry = {**self._head(direction, lower=False), **fields}
                        if self._holds(entry, lower=False, end=end):
                            return [Shown(entry, end)]
        with suppress(NoMethod, *FAILURES):
            shown_entries.append(self._on_lattice(direction, lower=False))
        with suppress(NoMethod, *FAILURES):
            # Chernoff's bound, by one moment, shows some end in any case.
            entry, end = moment_entry(items, direction.back, self._delta)
            entry = {**self._head(direction, lower=False), **entry}
            shown_entries.append(Shown(entry, max(end, self._upper)))
        return shown_entries

    def _below(self, directions: list[Direction]) -> Shown:
        """Return an entry and the lower end that it shows.

        If no method shows one, it is None with the certificate's end: the checker then says PROVED
        UPPER, and that the file does not claim to prove the lower end.
        """
        lower_ends, coarse = [], []
        for direction in directions:
            failed_entries, has_method = [], True
            try:
                for entry in self._precise(direction, lower=True):
                    if self._holds(entry, lower=True):
                        return Shown(entry, self._lower)
                    failed_entries.append(entry)
            except NoMethod:
                has_method = False
            # A lattice may show a lower end below the certificate's: where there is no other
            # method; where an entry may only have failed because it was smoothed or long; and in a
            # plan with sets, bounds or bests of runs, where the certificate's end may not be that
            # of any path, of any pair, or of one run.
            releases = self._alternatives[direction.number]
            if (
                not has_method
                or self._has_sets(direction)
                or any(release[0] == "bound" for release in releases)
                or not self._bests.keys().isdisjoint(releases)
                or any(map(_may_be_wider, failed_entries))
            ):
                coarse.append(direction)
        for direction in coarse:
            with suppress(NoMethod, *FAILURES):
                lower_ends.append(self._on_lattice(direction, lower=True))
        return max(lower_ends, key=lambda shown: shown.end, default=Shown(None, self._lower))

    def _items(self, direction: Direction, *, lower: bool, bits: int = PRECISION) -> Items:
        """Return the pairs above an alternative, or those below a costly path through it.

        A release of which no pair below is known is left out, which lowers delta.
        """
        # The checker's code counts its work down from here, and refuses what takes more.
        Budget.remaining = verdict.BUDGET
        releases = self._alternatives[direction.number]
        if lower:
            # Through JSON, as the checker reads the path from a file: tuples become lists.
            path = json.loads(json.dumps(self._path(direction)))
            releases = one_run(on_path(releases, path))
        elif self._delta:  # at delta 0 there are no pairs above
            tables = json.loads(json.dumps(self._tables_of_bests(direction)))
            with ctx.workprec(128 if tables else bits):
                return items_above(releases, direction.back, Fields({"best": tables}, "an entry"))
        with ctx.workprec(bits):
            items = [
                (bounding_pair(release, above=not lower), n) for release, n in releases.items()
            ]
        return [(pair, n) for pair, n in items if pair]

    def _has_sets(self, direction: Direction) -> bool:
        """Return whether a release of an alternative stands for several pairs."""
        return any(release[0] == ANY_OF for release in self._alternatives[direction.number])

    def _path(self, direction: Direction) -> list[Any]:
        """Return the choices of a costly path through an alternative, none where it has no sets."""

        def score(releases: Any) -> float:
            with ctx.workprec(PRECISION):
                items = [
                    (pair, n)
                    for release, n in releases.items()
                    if (pair := bounding_pair(release, above=False))
                ]
            if self._delta == 0:
                rational, irrational = largest_sum(items, direction.back, above=False)
                return float(rational) + float(irrational)
            with suppress(NoMethod, NoProof):
                return float_epsilon(items, direction.back, self._delta)
            return 0.0

        if not self._has_sets(direction):
            return []
        if direction not in self._paths:
            releases = self._alternatives[direction.number]
            self._paths[direction] = costly_path(releases, score)
        return self._paths[direction]

    def _head(self, direction: Direction, *, lower: bool) -> Entry:
        """Return the fields of an entry that say what it is about."""
        number, back = direction
        head: Entry = {"way": number, "direction": "reversed" if back else "forward"}
        if lower and self._has_sets(direction):
            head["path"] = self._path(direction)
        if not lower and self._delta and (tables := self._tables_of_bests(direction)):
            head["best"] = tables
        return head

    def _precise(self, direction: Direction, *, lower: bool) -> Iterator[Entry]:
        """Yield entries that may prove the end of the certificate itself."""
        end, items = self._lower if lower else self._upper, self._items(direction, lower=lower)
        # Contours may err by as much as delta changes over this width, which is not 0 unless the
        # upper end is.
        width = max(self._upper - self._lower, 1e-16 * self._upper)
        for entry in method_entries(items, direction.back, self._delta, end, width, lower=lower):
            yield {**self._head(direction, lower=lower), **entry}

    def _on_lattice(self, direction: Direction, *, lower: bool) -> Shown:
        """Return an entry, and the nearest end that it proves."""
        items = self._items(direction, lower=lower)
        claimed_end = self._lower if lower else self._upper
        if self._delta == 0 or not items:
            raise NoMethod("no lattice shows a delta of 0")
        entry = lattice_entry(items, direction.back, claimed_end, self._delta)
        # The checker reads an entry from JSON, and takes its fields away as it reads them.
        copied = json.loads(json.dumps({k: v for k, v in entry.items() if k != "road"}))
        bits = copied.pop("bits")
        # The checker computes the pairs with the bits of the entry: with few, balls are wider.
        items = self._items(direction, lower=lower, bits=bits)
        with ctx.workprec(bits):
            fields = Fields(copied, "an entry")
            bounds = composed(items, direction.back, fields, above=not lower)

            def is_shown(end: float) -> bool:
                # Where delta is constant, epsilon is its first point: a lower end needs "more".
                low, high = bounds(end)
                return bool(low > self._delta if lower else high <= self._delta)

            head = self._head(direction, lower=lower)
            return Shown({**head, **entry}, _nearest(is_shown, claimed_end, upwards=not lower))

    def _holds(self, entry: Entry | None, *, lower: bool, end: float | None = None) -> bool:
        """Return whether the checker accepts an entry, at the interval's end or another one."""
        Budget.remaining = verdict.BUDGET
        try:
            copied = json.loads(json.dumps(entry))  # the check takes its fields
            end = end or (self._lower if lower else self._upper)
            verdict.check(copied, self._alternatives, self._delta, end, above=not lower)
        except FAILURES:
            return False
        return True


def _may_be_wider(entry: Entry) -> bool:
    """Return whether an entry may fail where a wider interval holds: it is smoothed, or long."""
    smoothed = "smooth" in entry and float.fromhex(entry["smooth"]) > 0
    return smoothed or entry.get("nodes", 0) > LONG


def _nearest(is_shown: Callable[[float], bool], claimed: float, *, upwards: bool) -> float:
    """Return about the nearest end to the claimed one, on its outer side, that is shown."""
    if is_shown(claimed):
        return claimed
    least_distance = FIRST_DISTANCE * claimed or FIRST_DISTANCE
    fails, distance = claimed, least_distance
    for _ in range(MAX_STEPS):
        holds = claimed + distance if upwards else max(claimed - distance, 0.0)
        if is_shown(holds):
            break
        fails, distance = holds, 4 * distance
    else:
        raise NoMethod("no end is shown by a lattice")
    while abs(holds - fails) > least_distance + BRACKET * abs(holds - claimed):
        middle = (holds + fails) / 2
        holds, fails = (middle, fails) if is_shown(middle) else (holds, middle)
    return holds
