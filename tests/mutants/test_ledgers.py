"""Wrong ledgers, each caught by a law of the ledger."""

import numpy as np
import pytest

from accountant import Ledger
from accountant.ledger.interfaces import Entry
from tests.laws import test_ledger as laws


class LooksFirst(Ledger):
    """Asks the query before it charges."""

    def _pass(self, mechanism, query, who):
        query(self._data)
        return super()._pass(mechanism, query, who)


class DrawsFirst(Ledger):
    """Draws noise before it knows whether it may."""

    def _pass(self, mechanism, query, who):
        self._noise.random()
        return super()._pass(mechanism, query, who)


class ForgivesFailure(LooksFirst):
    """Does not charge a query that failed, because it learns of the failure first."""


class NeverAdvances(Ledger):
    """Charges nothing."""

    def _pass(self, mechanism, query, who):
        return self._answer(mechanism, query, who)


class SharesItsAnswers(Ledger):
    """Hands out the very array that the transcript keeps, open to change."""

    def _answer(self, mechanism, query, who):
        output = super()._answer(mechanism, query, who).copy()
        self._entries[-1] = Entry(mechanism, who, output)
        return output


class ChargesABatchOnce(Ledger):
    """Takes a batch of values where one release was paid for."""

    def _value(self, mechanism, query, who):
        return query(self._data)


class AnswersWithinAnswers(Ledger):
    """Lets a query ask the ledger itself."""

    def _answer(self, mechanism, query, who):
        self._answering = False
        return super()._answer(mechanism, query, who)


class OneSourceOfRandomness(Ledger):
    """Coins from the seed of the noise."""

    def __init__(self, *data, **options):
        super().__init__(*data, **options)
        self.coins = np.random.default_rng(self._noise.bit_generator.seed_seq)


CAUGHT_BY = {
    LooksFirst: laws.test_off_plan_is_refused_before_looking_or_drawing,
    DrawsFirst: laws.test_off_plan_is_refused_before_looking_or_drawing,
    ForgivesFailure: laws.test_a_failing_query_is_charged_and_recorded,
    NeverAdvances: laws.test_off_plan_is_refused_before_looking_or_drawing,
    SharesItsAnswers: laws.test_outputs_are_read_only_and_the_transcript_keeps_them,
    ChargesABatchOnce: laws.test_one_charge_pays_for_one_value,
    AnswersWithinAnswers: laws.test_a_query_may_not_ask_the_ledger,
    OneSourceOfRandomness: laws.test_coins_are_public_and_apart_from_the_noise,
}


@pytest.mark.parametrize("mutant", CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_the_named_law_catches_the_ledger(mutant, monkeypatch):
    CAUGHT_BY[mutant]()
    monkeypatch.setattr(laws, "Ledger", mutant)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        CAUGHT_BY[mutant]()
