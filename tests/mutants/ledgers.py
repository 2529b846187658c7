"""Wrong ledgers: a class in place of `Ledger`, or a monkeypatch of what it rests on."""

import itertools
import time

import numpy as np

from accountant import Ledger, OffPlan, ParameterError, Sequential
from accountant.ledger.interfaces import Entry, ShapedQuery
from accountant.ledger.plan_cursor import PlanCursor
from accountant.ledger.private_data import count_users, first_array


class QueriesBeforeCharging(Ledger):
    """Asks the query before it charges."""

    def _charge_and_answer(self, mechanism, query, who):
        query.query(self._data)
        return super()._charge_and_answer(mechanism, query, who)


class DrawsBeforeCharging(Ledger):
    """Draws noise before it knows whether it may."""

    def _charge_and_answer(self, mechanism, query, who):
        self._noise.random()
        return super()._charge_and_answer(mechanism, query, who)


class FailedQueryNotCharged(QueriesBeforeCharging):
    """Does not charge a query that failed, because it learns of the failure first."""


class NeverCharges(Ledger):
    """Charges nothing."""

    def _charge_and_answer(self, mechanism, query, who):
        return self._answer(mechanism, query, who)


class IgnoresLabels(Ledger):
    """Releases, and forgets the name that the answer was given."""

    def _release_once(self, mechanism, query, label):
        return self._charge_and_answer(mechanism, query, None)


class ReturnsTranscriptArray(Ledger):
    """Hands out the very array that the transcript keeps, open to change."""

    def _answer(self, mechanism, query, who):
        output = super()._answer(mechanism, query, who).copy()
        self._entries[-1] = Entry(mechanism, who, output)
        return output


class ChargesABatchOnce(Ledger):
    """Takes a batch of values where one release was paid for."""

    def _query_value(self, mechanism, query, who):
        return query.query(self._data)


class AllowsNestedReleases(Ledger):
    """Lets a query ask the ledger itself."""

    def _answer(self, mechanism, query, who):
        self._answering = False
        return super()._answer(mechanism, query, who)


class CoinsFromNoiseSeed(Ledger):
    """Coins from the seed of the noise."""

    def __init__(self, *data, **options):
        super().__init__(*data, **options)
        self.coins = np.random.default_rng(self._noise.bit_generator.seed_seq)


class WantsTheSameObject(Ledger):
    """Compares what is asked for by identity."""

    def _charge_and_answer(self, mechanism, query, who):
        if mechanism is not self.next:
            raise OffPlan(mechanism, self.next)
        return super()._charge_and_answer(mechanism, query, who)


class TakesAnything(Ledger):
    """Does not ask whether what it charges can release."""

    def _admitted(self, mechanism, query, shape):
        return mechanism, ShapedQuery(query, ())


class RefundsBadValues(Ledger):
    """Takes a charge back where the value was refused."""

    def _charge_and_answer(self, mechanism, query, who):
        try:
            return super()._charge_and_answer(mechanism, query, who)
        except ParameterError:
            self._meter = PlanCursor(self.plan, self._users)
            raise


class HandsOutWritableData(Ledger):
    """Gives a query data that it may change."""

    def __init__(self, data, *more, **options):
        super().__init__(data, *more, **options)
        self._data = np.array(data)


class KeepsAnswersForDigests(Ledger):
    """Keeps the answer where a digest was asked for."""

    def _record(self, mechanism, who, output):
        self._entries.append(Entry(mechanism, who, output, self._seeded))


class AnswersAnyway(Ledger):
    """Answers users that the plan has no part for."""

    def _charge_and_answer(self, mechanism, query, who):
        try:
            return super()._charge_and_answer(mechanism, query, who)
        except OffPlan:
            return self._answer(mechanism, query, who)


class ShowsEveryRow(Ledger):
    """Shows a query of some users the rows of all."""

    def _query_value(self, mechanism, query, who):
        if who is None:
            return super()._query_value(mechanism, query, who)
        of_all = lambda _: np.asarray(query.query(self._data))[who]  # noqa: E731
        return query._replace(query=of_all).value(None, count_users(who))


class LeavesAParallelEarly(Ledger):
    """Goes on after the first part of a parallel."""

    def _charge_and_answer(self, mechanism, query, who):
        answer = super()._charge_and_answer(mechanism, query, who)
        if self._meter._part_cursors and self._meter._part_cursors[0].next is None:
            self._meter._next = next(self._meter._leaves, None)
            self._meter._part_cursors, self._meter._part_of_user = [], None
        return answer


class WaitsForEveryUser(PlanCursor):
    """Waits in every part for the users of the others."""

    def __init__(self, plan, users, group_size=None):
        del group_size
        super().__init__(plan, users)


def parts_that_wait_for_every_user(patch):
    """A cursor of a part that counts the users of the whole plan."""
    patch.setattr("accountant.ledger.plan_cursor.PlanCursor", WaitsForEveryUser)


class UnrollsOneRelease(Ledger):
    """Unrolls a plan, up to a limit."""

    def __init__(self, data, plan, *more, **options):
        leaves = [] if plan is None else list(itertools.islice(plan.leaves(), 1))
        super().__init__(data, Sequential(leaves), *more, **options)


class IgnoresTheSeed(Ledger):
    """Draws from the operating system whatever the seed."""

    def __init__(self, data, plan, rng=None, **options):
        del rng
        super().__init__(data, plan, None, **options)


class ShapeOfTheData(Ledger):
    """Tells the shape of the data where a public array has its own."""

    @property
    def shape(self):
        return first_array(self._data).shape


class TakesMissingNumbers(Ledger):
    """Takes what is no number for zero."""

    def __init__(self, data, plan, *more, **options):
        super().__init__(np.nan_to_num(data), plan, *more, **options)


class TakesNegativeSeeds(Ledger):
    """Forgets the sign of a seed."""

    def __init__(self, data, plan, rng=None, **options):
        super().__init__(data, plan, abs(rng) if isinstance(rng, int) else rng, **options)


class LooksBeforeItLocks(Ledger):
    """Asks whether anything is left, and charges a moment later without looking again."""

    def _charge_and_answer(self, mechanism, query, who):
        if self.next is None:
            raise OffPlan(mechanism, None)
        time.sleep(1e-3)
        if self.next is not None:
            self._meter.charge(mechanism, who)
        return self._answer(mechanism, query, who)
