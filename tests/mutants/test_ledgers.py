"""Wrong ledgers, each caught by a law of the ledger."""

import numpy as np
import pytest

from accountant import Ledger
from accountant.ledger.interfaces import Entry
from tests.laws import test_ledger as laws


class QueriesBeforeCharging(Ledger):
    """Asks the query before it charges."""

    def _charge_and_answer(self, mechanism, query, who):
        query(self._data)
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


class ReturnsTranscriptArray(Ledger):
    """Hands out the very array that the transcript keeps, open to change."""

    def _answer(self, mechanism, query, who):
        output = super()._answer(mechanism, query, who).copy()
        self._entries[-1] = Entry(mechanism, who, output)
        return output


class ChargesABatchOnce(Ledger):
    """Takes a batch of values where one release was paid for."""

    def _query_value(self, mechanism, query, who):
        return query(self._data)


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


CAUGHT_BY = {
    QueriesBeforeCharging: laws.test_off_plan_is_refused_before_looking_or_drawing,
    DrawsBeforeCharging: laws.test_off_plan_is_refused_before_looking_or_drawing,
    FailedQueryNotCharged: laws.test_a_failing_query_is_charged_and_recorded,
    NeverCharges: laws.test_off_plan_is_refused_before_looking_or_drawing,
    ReturnsTranscriptArray: laws.test_outputs_are_read_only_and_the_transcript_keeps_them,
    ChargesABatchOnce: laws.test_one_charge_pays_for_one_value,
    AllowsNestedReleases: laws.test_a_query_may_not_ask_the_ledger,
    CoinsFromNoiseSeed: laws.test_coins_are_public_and_apart_from_the_noise,
}


@pytest.mark.parametrize("mutant", CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_the_named_law_catches_the_ledger(mutant, monkeypatch):
    CAUGHT_BY[mutant]()
    monkeypatch.setattr(laws, "Ledger", mutant)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        CAUGHT_BY[mutant]()
